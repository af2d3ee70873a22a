"""URLs of the pages of a history."""

from django.urls import path

from versions_app.views import actions, compare, history, publish, review

app_name = "versions"

AGENT = "agents/<str:agent_id>"
VERSIONS = f"{AGENT}/versions"
VERSION = f"{VERSIONS}/<int:number>"

urlpatterns = [
    path(VERSIONS, history.version_list, name="list"),
    path(f"{VERSIONS}/recent", history.recent, name="recent"),
    path(f"{VERSIONS}/compare", compare.compare, name="compare"),
    path(f"{VERSIONS}/review", review.review, name="review"),
    path(f"{VERSIONS}/conflict", review.conflict, name="conflict"),
    path(f"{VERSIONS}/save", actions.snapshot, name="snapshot"),
    path(f"{VERSIONS}/discard-draft", publish.discard_draft, name="discard_draft"),
    path(VERSION, history.view, name="view"),
    path(f"{VERSION}/download", history.download_version, name="download"),
    path(f"{VERSION}/activate", publish.activate, name="activate"),
    path(f"{VERSION}/restore", publish.restore, name="restore"),
    path(f"{VERSION}/bring-back", publish.bring_back, name="bring_back"),
    path(f"{VERSION}/take-back", publish.take_back, name="take_back"),
    path(f"{VERSION}/describe", actions.describe, name="describe"),
    path(f"{VERSION}/duplicate", actions.duplicate, name="duplicate"),
    path(f"{VERSION}/delete", actions.delete, name="delete"),
    path(f"{AGENT}/live-history", history.live_history, name="live_history"),
    path(f"{AGENT}/live-history/<int:activation_id>/undo", publish.undo, name="undo"),
]
