"""URLs of the agent pages."""

from django.urls import path
from django.views.generic import RedirectView

from agents_app.views import actions, bulk, trash
from agents_app.views import list as list_views
from agents_app.views.editor import fragments, pages
from agents_app.views.palette import palette
from agents_app.views.used_by import used_by

app_name = "agents"

AGENT = "agents/<str:agent_id>"

urlpatterns = [
    path("", list_views.agent_list, name="list"),
    path("go-to", palette, name="palette"),
    path("selected-agents", bulk.run_action, name="selected"),
    path("new-agent", pages.create, name="create"),
    path("new-agent/fields", fragments.new_agent_fields, name="new_fields"),
    path("new-agent/token-limit", fragments.token_limit, name="token_limit"),
    path("new-agent/options/<str:field>", fragments.new_agent_options, name="new_options"),
    path("deleted-agents", trash.deleted_agents, name="trash"),
    path("deleted-agents/restore", trash.restore_selected, name="restore_selected"),
    path("deleted-agents/<uuid:deleted_id>/restore", trash.restore, name="restore_deleted"),
    path("deleted-agents/<uuid:deleted_id>/undo", trash.undo_delete, name="undo_delete"),
    path("deleted-agents/<uuid:deleted_id>/delete", trash.purge, name="purge"),
    # What is left of the address of an agent without its ID.
    path("agents", RedirectView.as_view(pattern_name="agents:list", query_string=True)),
    path(AGENT, pages.edit, name="edit"),
    path(f"{AGENT}/used-by", used_by, name="used_by"),
    path(f"{AGENT}/fields", fragments.agent_fields, name="fields"),
    path(f"{AGENT}/options/<str:field>", fragments.agent_options, name="options"),
    path(f"{AGENT}/archive", actions.archive, name="archive"),
    path(f"{AGENT}/unarchive", actions.unarchive, name="unarchive"),
    path(f"{AGENT}/delete", actions.delete, name="delete"),
    path(f"{AGENT}/hand-over", actions.change_owner, name="change_owner"),
    path(f"{AGENT}/presence", actions.presence, name="presence"),
]
