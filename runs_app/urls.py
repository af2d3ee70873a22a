"""The addresses of the pages of runs."""

from django.urls import path

from runs_app.views import actions, runs, saved_inputs, try_agent

app_name = "runs"

RUN = "runs/<uuid:run_id>"
TRY = "agents/<str:agent_id>/try"

urlpatterns = [
    path("runs", runs.run_list, name="list"),
    path(RUN, runs.view, name="view"),
    path(f"{RUN}/answer", runs.answer, name="answer"),
    path(f"{RUN}/stream", actions.stream, name="stream"),
    path(f"{RUN}/stop", actions.stop, name="stop"),
    path(TRY, try_agent.try_it, name="try_it"),
    path(f"{TRY}/columns", try_agent.arrange, name="arrange"),
    path(f"{TRY}/run", try_agent.run, name="run"),
    path(f"{TRY}/inputs", saved_inputs.save, name="save_input"),
    path(f"{TRY}/inputs/<int:input_id>/forget", saved_inputs.forget, name="forget_input"),
]
