"""The URLs of jobs below /api."""

from django.urls import path

from jobs_app.api import views

urlpatterns = [
    path("jobs", views.JobsView.as_view(), name="api-jobs"),
    path("jobs/<str:job_id>", views.JobView.as_view(), name="api-job"),
]
