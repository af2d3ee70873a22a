"""The addresses of the versions below /api."""

from django.urls import path

from versions_app import activations_api, api, exchange_api

AGENT = "stored/agents/<str:agent_id>"
VERSION = f"{AGENT}/versions/<str:version_id>"

urlpatterns = [
    path("stored/agent-export", exchange_api.ExportView.as_view(), name="api-export"),
    path("stored/agent-import", exchange_api.ImportView.as_view(), name="api-import"),
    path("jobs/<str:job_id>/file", exchange_api.JobFileView.as_view(), name="api-job-file"),
    path(f"{AGENT}/versions", api.VersionsView.as_view(), name="api-versions"),
    path(f"{AGENT}/versions/compare", api.CompareView.as_view(), name="api-compare"),
    path(VERSION, api.VersionView.as_view(), name="api-version"),
    path(f"{VERSION}/activate", api.ActivateView.as_view(), name="api-activate"),
    path(f"{VERSION}/restore", api.RestoreView.as_view(), name="api-restore"),
    path(f"{AGENT}/discard-draft", api.DiscardDraftView.as_view(), name="api-discard-draft"),
    path(f"{AGENT}/activations", activations_api.ActivationsView.as_view(), name="api-activations"),
    path(f"{AGENT}/activations/undo", activations_api.UndoView.as_view(), name="api-undo"),
]
