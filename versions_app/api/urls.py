"""URLs of the API of versions, exports and imports."""

from django.urls import path

from versions_app.api import activations, exchange, trash, versions

API_AGENT = "stored/agents/<str:agent_id>"
API_VERSION = f"{API_AGENT}/versions/<str:version_id>"

urlpatterns = [
    path("stored/agent-export", exchange.ExportView.as_view(), name="api-export"),
    path("stored/agent-import", exchange.ImportView.as_view(), name="api-import"),
    path("stored/deleted-agents", trash.DeletedAgentsView.as_view(), name="api-deleted-agents"),
    path("stored/deleted-agents/<str:deleted_id>", trash.DeletedAgentView.as_view(), name="api-deleted-agent"),
    path(
        "stored/deleted-agents/<str:deleted_id>/restore",
        trash.RestoreDeletedAgentView.as_view(),
        name="api-restore-deleted-agent",
    ),
    path("jobs/<str:job_id>/file", exchange.JobFileView.as_view(), name="api-job-file"),
    path("jobs/<str:job_id>/records", exchange.JobRecordsView.as_view(), name="api-job-records"),
    path(f"{API_AGENT}/versions", versions.VersionsView.as_view(), name="api-versions"),
    path(f"{API_AGENT}/versions/compare", versions.CompareVersionsView.as_view(), name="api-compare"),
    path(API_VERSION, versions.VersionView.as_view(), name="api-version"),
    path(f"{API_VERSION}/activate", versions.ActivateView.as_view(), name="api-activate"),
    path(f"{API_VERSION}/restore", versions.RestoreView.as_view(), name="api-restore"),
    path(f"{API_AGENT}/discard-draft", versions.DiscardDraftView.as_view(), name="api-discard-draft"),
    path(f"{API_AGENT}/activations", activations.ActivationsView.as_view(), name="api-activations"),
    path(f"{API_AGENT}/activations/undo", activations.UndoView.as_view(), name="api-undo"),
]
