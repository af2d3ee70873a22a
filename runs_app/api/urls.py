"""URLs of the API of running agents, runs, approvals and model providers."""

from django.urls import path

from runs_app.api import agents, approvals, providers, runs

AGENT_PATH = "agents/<str:agent_id>"
API_RUN_PATH = "runs/<str:run_id>"

urlpatterns = [
    path("agents", agents.AgentsView.as_view(), name="api-running-agents"),
    path("agents/providers", providers.ProvidersView.as_view(), name="api-providers"),
    path(AGENT_PATH, agents.AgentView.as_view(), name="api-running-agent"),
    path(f"{AGENT_PATH}/generate", agents.GenerateView.as_view(), name="api-generate"),
    path(f"{AGENT_PATH}/stream", agents.AnswerStreamView.as_view(), name="api-stream"),
    path(f"{AGENT_PATH}/stream-until-idle", agents.AnswerStreamView.as_view(), name="api-stream-until-idle"),
    path(f"{AGENT_PATH}/observe", agents.ObserveView.as_view(), name="api-observe"),
    path(f"{AGENT_PATH}/recover", agents.RecoverView.as_view(), name="api-recover"),
    path(f"{AGENT_PATH}/suspended-runs", approvals.SuspendedRunsView.as_view(), name="api-suspended-runs"),
    path("approvals", approvals.ApprovalsView.as_view(), name="api-approvals"),
    path("approvals/<str:approval_id>", approvals.ApprovalView.as_view(), name="api-approval"),
    path("runs", runs.RunsView.as_view(), name="api-runs"),
    path(API_RUN_PATH, runs.RunDetailView.as_view(), name="api-run"),
    path(f"{API_RUN_PATH}/events", runs.EventsView.as_view(), name="api-run-events"),
    path(f"{API_RUN_PATH}/steps", runs.StepsView.as_view(), name="api-run-steps"),
    path(f"{API_RUN_PATH}/stream", runs.StreamView.as_view(), name="api-run-stream"),
    path(f"{API_RUN_PATH}/cancel", runs.CancelView.as_view(), name="api-run-cancel"),
]
