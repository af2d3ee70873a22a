"""The addresses of the versions below /api."""

from django.urls import path

from versions_app.api import activations, exchange, versions

AGENT = "stored/agents/<str:agent_id>"
VERSION = f"{AGENT}/versions/<str:version_id>"

urlpatterns = [
    path("stored/agent-export", exchange.ExportView.as_view(), name="api-export"),
    path("stored/agent-import", exchange.ImportView.as_view(), name="api-import"),
    path("jobs/<str:job_id>/file", exchange.JobFileView.as_view(), name="api-job-file"),
    path(f"{AGENT}/versions", versions.VersionsView.as_view(), name="api-versions"),
    path(f"{AGENT}/versions/compare", versions.CompareView.as_view(), name="api-compare"),
    path(VERSION, versions.VersionView.as_view(), name="api-version"),
    path(f"{VERSION}/activate", versions.ActivateView.as_view(), name="api-activate"),
    path(f"{VERSION}/restore", versions.RestoreView.as_view(), name="api-restore"),
    path(f"{AGENT}/discard-draft", versions.DiscardDraftView.as_view(), name="api-discard-draft"),
    path(f"{AGENT}/activations", activations.ActivationsView.as_view(), name="api-activations"),
    path(f"{AGENT}/activations/undo", activations.UndoView.as_view(), name="api-undo"),
]
