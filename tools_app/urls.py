"""URLs of the pages of background tasks."""

from django.urls import path

from tools_app.views import background_tasks

app_name = "tools"

urlpatterns = [
    path("background-tasks", background_tasks.task_list, name="background_tasks"),
    path("background-tasks/<uuid:task_id>/cancel", background_tasks.cancel_listed_task, name="cancel_task"),
]
