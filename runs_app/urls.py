"""URLs of the pages of runs, approvals, background tasks and the playground."""

from django.urls import path

from runs_app.views import actions, approvals, background_tasks, notices, runs, saved_inputs
from runs_app.views.playground import pages as playground
from runs_app.views.usage import usage

app_name = "runs"

RUN_PATH = "runs/<uuid:run_id>"
APPROVAL_PATH = "approvals/<uuid:call_id>"
PLAYGROUND_PATH = "agents/<str:agent_id>/try"

urlpatterns = [
    path("runs", runs.run_list, name="list"),
    path("agents/<str:agent_id>/runs", runs.agent_runs, name="of_agent"),
    path("agents/<str:agent_id>/usage", usage, name="usage"),
    path(RUN_PATH, runs.view, name="view"),
    path(f"{RUN_PATH}/answer", runs.answer_fragment, name="answer"),
    path(f"{RUN_PATH}/waiting", runs.waiting_state, name="waiting"),
    path(f"{RUN_PATH}/stream", actions.stream, name="stream"),
    path(f"{RUN_PATH}/stop", actions.stop, name="stop"),
    path(f"{RUN_PATH}/score", runs.score, name="score"),
    path("approvals", approvals.list_approvals, name="approvals"),
    path("approvals/count", approvals.approval_count, name="approval_count"),
    path(APPROVAL_PATH, approvals.approval, name="approval"),
    path(f"{APPROVAL_PATH}/decide", approvals.decide_call, name="decide"),
    path("background-tasks", background_tasks.task_list, name="background_tasks"),
    path("background-tasks/<uuid:task_id>/cancel", background_tasks.cancel_listed_task, name="cancel_task"),
    path("account/notices", notices.notices, name="notices"),
    path(PLAYGROUND_PATH, playground.playground, name="playground"),
    path(f"{PLAYGROUND_PATH}/columns", playground.arrange, name="arrange"),
    path(f"{PLAYGROUND_PATH}/run", playground.run, name="run"),
    path(f"{PLAYGROUND_PATH}/inputs", saved_inputs.save_input, name="save_input"),
    path(f"{PLAYGROUND_PATH}/inputs/<int:input_id>/forget", saved_inputs.delete_input, name="delete_input"),
]
