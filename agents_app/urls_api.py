"""The addresses of the agents below /api."""

from django.urls import path

from agents_app import api

urlpatterns = [
    path("stored/agents", api.AgentsView.as_view(), name="api-agents"),
    path("stored/agents/<str:agent_id>", api.AgentView.as_view(), name="api-agent"),
    path("stored/agents/<str:agent_id>/dependents", api.DependentsView.as_view(), name="api-dependents"),
    path("stored/agents/<str:agent_id>/duplicate", api.DuplicateView.as_view(), name="api-duplicate"),
]
