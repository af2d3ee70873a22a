"""The addresses of the pages of runs."""

from django.urls import path

from runs_app import views, views_acts, views_inputs, views_try

app_name = "runs"

RUN = "runs/<uuid:run_id>"
TRY = "agents/<str:agent_id>/try"

urlpatterns = [
    path("runs", views.list, name="list"),
    path(RUN, views.view, name="view"),
    path(f"{RUN}/answer", views.answer, name="answer"),
    path(f"{RUN}/stream", views_acts.stream, name="stream"),
    path(f"{RUN}/stop", views_acts.stop, name="stop"),
    path(TRY, views_try.try_it, name="try_it"),
    path(f"{TRY}/columns", views_try.arrange, name="arrange"),
    path(f"{TRY}/run", views_try.run, name="run"),
    path(f"{TRY}/inputs", views_inputs.save, name="save_input"),
    path(f"{TRY}/inputs/<int:input_id>/forget", views_inputs.forget, name="forget_input"),
]
