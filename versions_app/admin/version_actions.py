"""Actions of the admin on versions, each with a confirmation page: publish, restore, pin and unpin."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, NamedTuple

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from access_app.admin_base.confirmation import confirmation_page
from access_app.permissions import has_role
from access_app.role import Role
from agentcms.plural import pluralize
from agents_app.configuration.sub_agents import dependents_payload
from agents_app.editing.archive_guard import AgentArchived
from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import MoveRefused
from agents_app.models import Agent
from versions_app.admin.history import HistoryAdmin
from versions_app.compare.sections import build_sections
from versions_app.models import AgentVersion
from versions_app.publishing import publish_notes_of

LIVE_MOVED_MESSAGE = "The live version changed since you opened this page. Nothing was changed. Check the new state."
DRAFT_MOVED_MESSAGE = "The draft changed since you opened this page. Nothing was changed. Check the new state."
VERSION_GONE_MESSAGE = "The version was deleted in the meantime, or its agent belongs to another team now."
PIN_HINT = "Only an editor of its team can pin or unpin a version, and nobody while its agent is archived."
DELETED_ERRORS = (Agent.DoesNotExist, AgentVersion.DoesNotExist)
MAX_SELECTED = 200


class ConfirmedAction(NamedTuple):
    """An admin action that needs a confirmation. `run` returns a message about its result."""

    name: str
    verb: str
    run: Callable[[AgentVersion, Agent], str]


def publish_version(version: AgentVersion, row: Agent) -> str:
    version.activate_locked(row)
    return f"Version {version.version_number} of {row.pk} is live."


def restore_version(version: AgentVersion, row: Agent) -> str:
    restored = version.restore_locked(row)
    is_draft = f" It stays a draft. {row.draft_reason}" if row.draft_reason else ""
    return f"{restored.change_message}: version {restored.version_number} of {row.pk}.{is_draft}"


def refusal_message(error: Exception) -> str:
    """Return why a version was neither published nor restored."""
    if isinstance(error, MoveRefused):
        return error.summary
    return str(error) if isinstance(error, AgentArchived) else VERSION_GONE_MESSAGE


def needless_message(version: AgentVersion, action: ConfirmedAction) -> str:
    """Return why an action would change nothing, or ""."""
    agent, name = version.agent, f"Version {version.version_number} of {version.agent.name}"
    if agent.archived_at is not None:
        return ""  # the action refuses with the reason
    if action.name == "publish" and version.pk == agent.active_version_id:
        return f"{name} is already live."
    if action.name == "restore" and version.pk == agent.head_version_id:
        return f"Editing already continues from version {version.version_number} of {agent.name}."
    return ""


def moved_message(request: HttpRequest, row: Agent, action: ConfirmedAction) -> str:
    """Return that a version which the action replaces is no longer the one that the page named, or ""."""
    if request.POST.get("live") != str(row.active_version_id):
        return LIVE_MOVED_MESSAGE
    # Publishing leaves a draft as it is, and a restored version takes its place.
    if action.name == "restore" and request.POST.get("head") != str(row.head_version_id):
        return DRAFT_MOVED_MESSAGE
    return ""


def confirm_button(version: AgentVersion, live: AgentVersion | None, action: ConfirmedAction) -> str:
    """Return the label of the button, which repeats what it does."""
    replaces = f" (replaces v{live.version_number})" if live else ""
    what = "Publish" if action.name == "publish" else "Restore and publish"
    return f"{what} v{version.version_number}{replaces}"


class VersionActionsAdmin(HistoryAdmin):
    """The actions on the versions that are selected in the list."""

    actions = ("publish", "restore", "pin", "unpin")
    action_roles: ClassVar = {
        "publish": Role.PUBLISHER,
        "restore": Role.PUBLISHER,
        "pin": Role.EDITOR,
        "unpin": Role.EDITOR,
    }

    def lock_agent_of(self, request: HttpRequest, version: AgentVersion, role: Role) -> Agent:
        """Lock the agent of a version, and check the role again: it may have another team since.

        Raise AgentVersion.DoesNotExist for what the user may no longer change, too.
        """
        row = version.locked_agent()
        if not has_role(request.user, role, row.owner_id):
            raise AgentVersion.DoesNotExist(VERSION_GONE_MESSAGE)
        return row

    @admin.action(description="Publish the selected version …")
    def publish(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._confirm_and_run(request, versions, ConfirmedAction("publish", "Publish", publish_version))

    @admin.action(description="Restore the selected version as a new version …")
    def restore(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._confirm_and_run(request, versions, ConfirmedAction("restore", "Restore", restore_version))

    def _confirm_and_run(
        self, request: HttpRequest, versions: QuerySet[AgentVersion], action: ConfirmedAction
    ) -> HttpResponse | None:
        """Show the confirmation page, then run the action unless live or the draft changed since."""
        version = self._publishable(request, versions, action)
        if version is None:
            return None
        if "confirmed" not in request.POST:
            return self._render_confirmation(request, version, action)
        try:
            # The column of reasons has 500 characters.
            with transaction.atomic(), change(message=request.POST.get("reason", "")[:500]):
                # On the version: if a pointer moved, the page is rendered again with the versions of the locked row.
                version.agent = self.lock_agent_of(request, version, Role.PUBLISHER)
                # Compared under the lock: the page named the live version and the draft, which may have moved.
                if not (moved := moved_message(request, version.agent, action)):
                    self.message_user(request, action.run(version, version.agent))
                    if version.agent.gate_warning:
                        self.message_user(request, version.agent.gate_warning, messages.WARNING)
                    return None
        except (MoveRefused, AgentArchived, *DELETED_ERRORS) as error:
            self.message_user(request, refusal_message(error), messages.ERROR)
            return None
        self.message_user(request, moved, messages.WARNING)
        return self._render_confirmation(request, version, action)

    @admin.action(description="Pin the selected versions …")
    def pin(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._confirm_and_pin(request, versions, pinned=True)

    @admin.action(description="Unpin the selected versions …")
    def unpin(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._confirm_and_pin(request, versions, pinned=False)

    def _confirm_and_pin(
        self, request: HttpRequest, versions: QuerySet[AgentVersion], pinned: bool
    ) -> HttpResponse | None:
        """Show the confirmation page, then change the pins of the versions that the user may edit."""
        selected = list(versions[: MAX_SELECTED + 1])
        if len(selected) > MAX_SELECTED:
            self.message_user(request, f"Select at most {MAX_SELECTED} versions.", messages.ERROR)
            return None
        changeable = [version for version in selected if self.has_change_permission(request, version)]
        if changeable and "confirmed" not in request.POST:
            return self._render_pin_confirmation(request, changeable, len(selected) - len(changeable), pinned)
        updated = 0
        for version in changeable:
            # Retention may delete a version meanwhile, and somebody may archive its agent.
            with suppress(AgentArchived, *DELETED_ERRORS), transaction.atomic():
                row = self.lock_agent_of(request, version, Role.EDITOR)
                version.update_description_locked(row, pinned=pinned)
                updated += 1
        end = "pinned." if pinned else "unpinned."
        self.report_action(request, updated, len(selected), "version", end, PIN_HINT)
        return None

    def _render_pin_confirmation(
        self, request: HttpRequest, versions: list[AgentVersion], left_out: int, pinned: bool
    ) -> HttpResponse:
        verb = "Pin" if pinned else "Unpin"
        title = f"{verb} {pluralize(len(versions), 'version')}"
        context = {"versions": versions, "left_out": left_out, "hint": PIN_HINT, "action": verb.lower(), "verb": verb}
        return confirmation_page(self, request, "versions_app/confirm_pins", title, **context)

    def _render_confirmation(
        self, request: HttpRequest, version: AgentVersion, action: ConfirmedAction
    ) -> HttpResponse:
        """Render the confirmation page with the changes to the live version."""
        live = version.agent.active_version
        refusal, warning = publish_notes_of(version.agent, version)
        base, unfolded = live.snapshot if live else {}, request.POST.getlist("unfold")
        context = {
            "version": version,
            "live": live,
            "sections": build_sections(base, version.snapshot, side_by_side=False, unfolded=unfolded),
            "unfolded": unfolded,
            "action": action.name,
            "verb": action.verb,
            "button": confirm_button(version, live, action),
            "used_by": dependents_payload(request.user, version.agent),
            "gate_refusal": refusal,
            "gate_warning": warning,
        }
        title = f"{action.verb}: version {version.version_number} of {version.agent.name}"
        return confirmation_page(self, request, "versions_app/confirm", title, **context)

    def _publishable(
        self, request: HttpRequest, versions: QuerySet[AgentVersion], action: ConfirmedAction
    ) -> AgentVersion | None:
        """Return the single selected version, or None with a message if the user may not publish it."""
        # Two are enough to know that there is more than one.
        selected = list(versions.select_related("agent__active_version")[:2])
        if len(selected) != 1:
            self.message_user(request, "Select one version.", messages.ERROR)
        elif not has_role(request.user, Role.PUBLISHER, selected[0].agent.owner_id):
            self.message_user(request, "Publishing needs the Publisher role.", messages.ERROR)
        elif message := needless_message(selected[0], action):
            self.message_user(request, message, messages.WARNING)
        else:
            return selected[0]
        return None
