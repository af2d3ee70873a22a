"""URLs of the API of running agents, runs and model providers."""

from django.urls import path

from runs_app.api import agents, providers, runs

AGENT_PATH = "agents/<str:agent_id>"
API_RUN_PATH = "runs/<str:run_id>"

urlpatterns = [
    path("agents", agents.AgentsView.as_view(), name="api-running-agents"),
    path("agents/providers", providers.ProvidersView.as_view(), name="api-providers"),
    path(AGENT_PATH, agents.AgentView.as_view(), name="api-running-agent"),
    path(f"{AGENT_PATH}/generate", agents.GenerateView.as_view(), name="api-generate"),
    path(f"{AGENT_PATH}/stream", agents.AnswerStreamView.as_view(), name="api-stream"),
    path(f"{AGENT_PATH}/observe", agents.ObserveView.as_view(), name="api-observe"),
    path("runs", runs.RunsView.as_view(), name="api-runs"),
    path(API_RUN_PATH, runs.RunDetailView.as_view(), name="api-run"),
    path(f"{API_RUN_PATH}/events", runs.EventsView.as_view(), name="api-run-events"),
    path(f"{API_RUN_PATH}/stream", runs.StreamView.as_view(), name="api-run-stream"),
    path(f"{API_RUN_PATH}/cancel", runs.CancelView.as_view(), name="api-run-cancel"),
]
