"""The addresses of the pages of a history."""

from django.urls import path

from versions_app import views, views_acts, views_compare, views_moves, views_review

app_name = "versions"

AGENT = "agents/<str:agent_id>"
VERSIONS = f"{AGENT}/versions"
VERSION = f"{VERSIONS}/<int:number>"

urlpatterns = [
    path(VERSIONS, views.list, name="list"),
    path(f"{VERSIONS}/recent", views.recent, name="recent"),
    path(f"{VERSIONS}/compare", views_compare.compare, name="compare"),
    path(f"{VERSIONS}/review", views_review.review, name="review"),
    path(f"{VERSIONS}/clash", views_review.clash, name="clash"),
    path(f"{VERSIONS}/save", views_acts.snapshot, name="snapshot"),
    path(f"{VERSIONS}/discard-draft", views_moves.discard_draft, name="discard_draft"),
    path(VERSION, views.view, name="view"),
    path(f"{VERSION}/download", views.download, name="download"),
    path(f"{VERSION}/activate", views_moves.activate, name="activate"),
    path(f"{VERSION}/restore", views_moves.restore, name="restore"),
    path(f"{VERSION}/bring-back", views_moves.bring_back, name="bring_back"),
    path(f"{VERSION}/describe", views_acts.describe, name="describe"),
    path(f"{VERSION}/duplicate", views_acts.duplicate, name="duplicate"),
    path(f"{VERSION}/delete", views_acts.delete, name="delete"),
    path(f"{AGENT}/activations", views.activations, name="activations"),
    path(f"{AGENT}/activations/<int:activation_id>/undo", views_moves.undo, name="undo"),
]
