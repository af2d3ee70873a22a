"""URLs of the agents API, below /api."""

from django.urls import path

from agents_app.api import (
    exceptions,  # noqa: F401  registers the errors of the domain
    views,
)

urlpatterns = [
    path("stored/agents", views.AgentsView.as_view(), name="api-agents"),
    path("stored/agents/<str:agent_id>", views.AgentView.as_view(), name="api-agent"),
    path("stored/agents/<str:agent_id>/dependents", views.DependentsView.as_view(), name="api-dependents"),
    path("stored/agents/<str:agent_id>/archive", views.ArchiveView.as_view(), name="api-archive"),
    path("stored/agents/<str:agent_id>/unarchive", views.UnarchiveView.as_view(), name="api-unarchive"),
    path("stored/agents/<str:agent_id>/duplicate", views.DuplicateView.as_view(), name="api-duplicate"),
]
