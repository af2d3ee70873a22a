"""The addresses of agents that run, and of their runs, below /api."""

from django.urls import path

from runs_app import api, api_providers, api_runs

AGENT = "agents/<str:agent_id>"
RUN = "runs/<str:run_id>"

urlpatterns = [
    path("agents", api.AgentsView.as_view(), name="api-running-agents"),
    path("agents/providers", api_providers.ProvidersView.as_view(), name="api-providers"),
    path(AGENT, api.AgentView.as_view(), name="api-running-agent"),
    path(f"{AGENT}/generate", api.GenerateView.as_view(), name="api-generate"),
    path(f"{AGENT}/stream", api.AnswerStreamView.as_view(), name="api-stream"),
    path(f"{AGENT}/observe", api.ObserveView.as_view(), name="api-observe"),
    path("runs", api_runs.RunsView.as_view(), name="api-runs"),
    path(RUN, api_runs.RunView.as_view(), name="api-run"),
    path(f"{RUN}/events", api_runs.EventsView.as_view(), name="api-run-events"),
    path(f"{RUN}/stream", api_runs.StreamView.as_view(), name="api-run-stream"),
    path(f"{RUN}/cancel", api_runs.CancelView.as_view(), name="api-run-cancel"),
]
