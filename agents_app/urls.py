"""The addresses of the pages of agents."""

from django.urls import path

from agents_app import views, views_acts, views_edit, views_selected

app_name = "agents"

AGENT = "agents/<str:agent_id>"

urlpatterns = [
    path("", views.list, name="list"),
    path("selected-agents", views_selected.act, name="selected"),
    path("new-agent", views_edit.create, name="create"),
    path(AGENT, views_edit.edit, name="edit"),
    path(f"{AGENT}/delete", views_acts.delete, name="delete"),
    path(f"{AGENT}/hand-over", views_acts.hand_over, name="hand_over"),
    path(f"{AGENT}/presence", views_acts.presence, name="presence"),
]
