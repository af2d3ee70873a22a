"""The addresses of agents that run, and of their runs, below /api."""

from django.urls import path

from runs_app.api import agents, providers, runs

AGENT = "agents/<str:agent_id>"
RUN = "runs/<str:run_id>"

urlpatterns = [
    path("agents", agents.AgentsView.as_view(), name="api-running-agents"),
    path("agents/providers", providers.ProvidersView.as_view(), name="api-providers"),
    path(AGENT, agents.AgentView.as_view(), name="api-running-agent"),
    path(f"{AGENT}/generate", agents.GenerateView.as_view(), name="api-generate"),
    path(f"{AGENT}/stream", agents.AnswerStreamView.as_view(), name="api-stream"),
    path(f"{AGENT}/observe", agents.ObserveView.as_view(), name="api-observe"),
    path("runs", runs.RunsView.as_view(), name="api-runs"),
    path(RUN, runs.RunView.as_view(), name="api-run"),
    path(f"{RUN}/events", runs.EventsView.as_view(), name="api-run-events"),
    path(f"{RUN}/stream", runs.StreamView.as_view(), name="api-run-stream"),
    path(f"{RUN}/cancel", runs.CancelView.as_view(), name="api-run-cancel"),
]
