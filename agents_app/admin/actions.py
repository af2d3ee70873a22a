"""Admin actions on agents besides editing, each with a confirmation page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from access_app.admin_base.confirmation import confirmation_page
from access_app.permissions import has_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.plural import pluralize
from agents_app.admin.removal import AgentRemovalAdmin
from agents_app.configuration.sub_agents import describe_dependents
from agents_app.editing import bulk
from agents_app.editing.archive_guard import reject_archived
from agents_app.editing.archiving import archive_locked, unarchive_locked
from agents_app.editing.change_context import change
from agents_app.forms.actions import ArchiveForm, DiscardDraftForm, DuplicateForm, SnapshotForm
from agents_app.models import Agent
from agents_app.views.access import reject_replaced, selectable_owners
from versions_app.exchange.export_job import start_agent_export
from versions_app.models.version import get_head_version, get_live_version
from versions_app.publishing import publish_notes

ACTION_TITLES = {
    "duplicate": "Duplicate",
    "snapshot": "Save version",
    "discard_draft": "Discard draft",
    "archive": "Archive",
    "unarchive": "Unarchive",
}
DRAFT_CHANGED_MESSAGE = (
    "The live version or the draft changed since you opened this page. The page now shows the current state."
)


class DraftToPublish(NamedTuple):
    """A draft in the question whether to publish. `versions` are live and draft, `refusal` and `warning` of gates."""

    agent: Agent
    versions: str
    refusal: str
    warning: str


def drafts_to_publish(agents: list[Agent]) -> list[DraftToPublish]:
    notes = publish_notes([(agent, get_head_version(agent)) for agent in agents])
    return [
        DraftToPublish(agent, bulk.live_and_draft(agent), *note) for agent, note in zip(agents, notes, strict=True)
    ]


class AgentActionsAdmin(AgentRemovalAdmin):
    """The confirmation pages of single agents and the actions on selected agents."""

    actions = ("publish_drafts", "export", "archive_agents", "unarchive_agents", "delete_agents")

    def get_urls(self) -> list[URLPattern]:
        action_urls = [
            path(
                f"<path:object_id>/{name.replace('_', '-')}/", self.action_view(name), name=f"agents_app_agent_{name}"
            )
            for name in ACTION_TITLES
        ]
        return [*action_urls, *super().get_urls()]

    def action_view(self, name: str) -> Callable[..., HttpResponse]:
        action = getattr(self, name)

        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            agent = get_object_or_404(self.get_queryset(request), pk=unquote(object_id))
            try:
                response: HttpResponse = action(request, agent)
            except Agent.DoesNotExist:  # deleted since the query above
                raise Http404 from None
            return response

        return self.admin_site.admin_view(view)

    def duplicate(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """Duplicate the live version as an agent with its own history."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        reject_replaced(request, agent)
        live, owners = get_live_version(agent), selectable_owners(request.user, Role.EDITOR)
        form = DuplicateForm(request.POST or None, agent=agent, version=live, owners=owners)
        if form.is_valid() and (copy := form.save(agent, live)):
            return self.redirect_with_message(request, copy, f"{agent.name} was duplicated as {copy.pk}.")
        text = f"The duplicate starts with the live version of {agent.name} and gets its own history."
        return self.render_confirmation(request, agent, form, "duplicate", text)

    def snapshot(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """Save a version equal to the head without publishing it."""
        # First, for its reason: nobody has the permission to change an archived agent.
        reject_archived(agent)
        if not self.has_change_permission(request, agent):
            raise PermissionDenied
        form = SnapshotForm(request.POST or None, initial={"pinned": True})
        if form.is_valid():
            values = form.cleaned_data
            with transaction.atomic(), change(name=values["name"], message=values["change_message"]):
                row = self.get_locked_row(request, agent, Role.EDITOR)
                version = row.versions.snapshot_locked(row, pinned=values["pinned"])
            return self.redirect_with_message(request, agent, f"v{version.version_number} of {agent.name} was saved.")
        text = f"Saves the current configuration of {agent.name} as a version. The live version does not change."
        return self.render_confirmation(request, agent, form, "snapshot", text)

    @transaction.atomic
    def discard_draft(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """Discard the draft, unless it changed since the confirmation page was rendered."""
        # First, for its reason: nobody has the permission to change an archived agent.
        reject_archived(agent)
        if not self.has_change_permission(request, agent):
            raise PermissionDenied
        row = self.get_locked_row(request, agent, Role.EDITOR)
        number = get_head_version(row).version_number
        if not row.has_draft:
            return self.redirect_with_message(
                request, agent, f"{agent.name} has no draft to discard.", messages.WARNING
            )
        form = DiscardDraftForm(request.POST or None, initial={"head": row.head_version_id})
        if form.is_valid() and form.cleaned_data["head"] == row.head_version_id:
            agent.versions.discard_draft_locked(row)
            return self.redirect_with_message(request, agent, f"The draft v{number} of {agent.name} was discarded.")
        if form.is_bound:
            self.message_user(request, DRAFT_CHANGED_MESSAGE, messages.WARNING)
            form = DiscardDraftForm(initial={"head": row.head_version_id})
        text = (
            f"Discards the draft v{number} of {agent.name}. Editing starts from the live version "
            f"v{get_live_version(row).version_number} again. The versions of the draft stay in the history."
        )
        return self.render_confirmation(request, agent, form, "discard_draft", text)

    @transaction.atomic
    def archive(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """Archive the agent, after the user confirmed that others lose it."""
        if not self.has_delete_permission(request, agent):
            raise PermissionDenied
        users = describe_dependents(request.user, agent)
        # Not `request.POST or None`: a form without fields may post nothing.
        form = ArchiveForm(request.POST if request.method == "POST" else None, is_used=bool(users))
        if form.is_valid():
            archive_locked(self.get_locked_row(request, agent, Role.PUBLISHER))
            return self.redirect_with_message(request, agent, f"{agent.name} was archived.")
        text = f"{agent.name} is left out of lists and pickers, and does not run. Everything stays."
        if users:
            text = f"{text} It is a sub-agent of {users}, which will lose it."
        return self.render_confirmation(request, agent, form, "archive", text)

    @transaction.atomic
    def unarchive(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        """Unarchive the agent."""
        if not self.has_delete_permission(request, agent):
            raise PermissionDenied
        if request.method == "POST":
            unarchive_locked(self.get_locked_row(request, agent, Role.PUBLISHER))
            return self.redirect_with_message(request, agent, f"{agent.name} was unarchived.")
        text = f"{agent.name} is in lists and pickers again, and can run."
        return self.render_confirmation(request, agent, forms.Form(), "unarchive", text)

    def redirect_with_message(
        self, request: HttpRequest, agent: Agent, message: str, level: int = messages.SUCCESS
    ) -> HttpResponse:
        self.message_user(request, message, level)
        return redirect("admin:agents_app_agent_change", quote(agent.pk))

    def render_confirmation(
        self, request: HttpRequest, agent: Agent, form: forms.Form, action: str, text: str
    ) -> HttpResponse:
        # Rendered with its errors, the form would have the key of this agent, and would be accepted when sent again.
        reject_replaced(request, agent)
        verb = ACTION_TITLES[action]
        context = {"form": form, "agent": agent, "verb": verb, "text": text}
        return confirmation_page(self, request, "agents_app/act", f"{verb}: {agent.name}", **context)

    @admin.action(description="Publish drafts of selected agents …")
    def publish_drafts(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        """Ask for confirmation, then publish the drafts that did not change since."""
        if (ids := self.selected_ids(request, agents)) is None:
            return None
        if "confirmed" not in request.POST:
            return self.confirm_publishing(request, list(agents))
        publish = partial(bulk.publish_draft, confirmed=set(request.POST.getlist("draft")))
        # The column of messages has 500 characters.
        with change(message=request.POST.get("reason", "")[:500]):
            results = bulk.apply_to_each(Agent.objects.for_user(request.user), request.user, ids, publish)
        published = sum(result.done for result in results)
        level = messages.SUCCESS if published else messages.WARNING
        self.message_user(request, f"Published {pluralize(published, 'draft')}.", level)
        for result in results:
            if not result.done or result.warning:
                self.message_user(request, f"{result.name}: {result.warning or result.sentence}", messages.WARNING)
        return None

    def confirm_publishing(self, request: HttpRequest, agents: list[Agent]) -> HttpResponse | None:
        """Render the drafts that the user may publish, or add a warning without any."""
        allowed = [agent for agent in agents if has_role(request.user, Role.PUBLISHER, agent.owner_id)]
        drafts = drafts_to_publish([agent for agent in allowed if agent.has_draft and not agent.archived_at])
        if not drafts:
            self.message_user(
                request, "None of the selected agents has a draft that you can publish.", messages.WARNING
            )
            return None
        title = f"Publish {pluralize(len(drafts), 'draft')}"
        context = {"drafts": drafts, "skipped": len(agents) - len(drafts), "verb": "Publish"}
        context["are_all_refused"] = all(draft.refusal for draft in drafts)
        return confirmation_page(self, request, "agents_app/publish_drafts", title, **context)

    @admin.action(description="Export selected agents")
    def export(self, request: HttpRequest, agents: QuerySet[Agent]) -> HttpResponse | None:
        """Start a job of the user that exports the selected agents to a file."""
        if (ids := self.selected_ids(request, agents, " Or export all agents on their page.")) is None:
            return None
        try:
            job = start_agent_export(request.user, ids)
        except ApiError as error:  # too many jobs or files
            self.message_user(request, error.error, messages.ERROR)
            return None
        self.message_user(request, "This page shows the progress of the export, and then its file.")
        return redirect("admin:jobs_app_job_change", job.pk)
