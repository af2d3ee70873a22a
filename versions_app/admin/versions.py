"""Versions and activations for staff: a version is read, never changed but for its name, message and pin."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_access import ReadOnlyAdmin, confirmation_page
from access_app.permissions import has_role
from access_app.role import Role
from agents_app.configuration.sub_agents import CircularReference
from agents_app.editing.change_context import change
from agents_app.models import Agent
from versions_app import tasks  # noqa: F401  it offers the jobs that staff may start
from versions_app.compare.sections import build_sections
from versions_app.models import AgentVersion

LIVE_MOVED_MESSAGE = "Nothing was changed: somebody moved live since you opened this. This is how it stands now."
VERSION_GONE_MESSAGE = "It was removed meanwhile."
DELETED_ERRORS = (Agent.DoesNotExist, AgentVersion.DoesNotExist)
MAX_SELECTED = 200  # at once: as many as a list shows


class ConfirmedAction(NamedTuple):
    """What is asked before it is done; `do` answers with what was done."""

    name: str
    verb: str
    do: Callable[[AgentVersion, Agent], str]


def publish_version(version: AgentVersion, row: Agent) -> str:
    version.activate_locked(row)
    return f"Version {version.version_number} of {row.pk} is live."


def restore_version(version: AgentVersion, row: Agent) -> str:
    made = version.restore_locked(row)
    return f"{made.change_message}: version {made.version_number} of {row.pk}."


class HistoryAdmin(ReadOnlyAdmin):
    """Staff see the history of the agents that they may see."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        visible: QuerySet[Any] = super().get_queryset(request)
        return visible.filter(agent__in=Agent.objects.for_user(request.user)).select_related("agent", "author")


@admin.register(AgentVersion)
class AgentVersionAdmin(HistoryAdmin):
    list_display = (
        "__str__",
        "standing",
        "change_message",
        "author_name",
        "source",
        "created_at",
        "pinned",
    )
    list_filter = ("source", "pinned", "created_at")
    search_fields = ("agent__id", "agent__name", "name", "change_message", "author_name")
    ordering = ("-id",)  # the newest of all agents; no index has them by number
    show_full_result_count = False  # it would count a million versions beside what was found
    list_per_page = 50
    actions = ("make_live", "restore", "pin", "unpin")
    readonly_fields = (
        "agent",
        "version_number",
        "standing",
        "page",
        "difference",
        "picture",
        "based_on",
        "author_name",
        "source",
        "created_at",
    )
    fields = ("name", "change_message", "pinned", *readonly_fields)

    def has_change_permission(self, request: HttpRequest, obj: AgentVersion | None = None) -> bool:
        """Editors may name and pin; the form shows nothing else to edit."""
        if not self.has_module_permission(request):
            return False
        return obj is None or has_role(request.user, Role.EDITOR, obj.agent.owner_id)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The version, with the folds of its difference that are to be open."""
        version: Any = super().get_object(request, object_id, from_field)
        if version is not None:
            version.unfolded = request.GET.getlist("unfold")
        return version

    def save_model(self, request: HttpRequest, obj: AgentVersion, form: Any, change: bool) -> None:
        """Not `save()`, which would bring back a version that was removed meanwhile."""
        try:
            obj.update_description(**{name: form.cleaned_data[name] for name in form.changed_data})
        except DELETED_ERRORS:
            raise Http404(VERSION_GONE_MESSAGE) from None

    @admin.display(description="Snapshot")
    def picture(self, version: AgentVersion) -> str:
        return format_html("<pre>{}</pre>", json.dumps(version.snapshot, indent=2, ensure_ascii=False))

    @admin.display(description="Changed since")
    def difference(self, version: Any) -> str:
        """What differs from the version that it is based on."""
        before = version.agent.versions.filter(version_number=version.based_on or 0).first()
        shown = before.snapshot if before else {}
        found = build_sections(shown, version.snapshot, side_by_side=False, unfolded=version.unfolded)
        gone = version.based_on is not None and before is None
        context = {"version": version, "before": before, "gone": gone, "sections": found, "side_by_side": False}
        return render_to_string("admin/versions_app/difference.html", context)

    @admin.display(description="Standing")
    def standing(self, version: AgentVersion) -> str:
        is_live = version.pk == version.agent.active_version_id
        is_head = version.pk == version.agent.head_version_id
        return ", ".join(word for word, holds in (("live", is_live), ("head", is_head)) if holds) or "–"

    @admin.display(description="Pages")
    def page(self, version: AgentVersion) -> str:
        own = reverse("versions:view", args=[version.agent_id, version.version_number])
        whole = reverse("versions:list", args=[version.agent_id])
        return format_html('<a href="{}">This version</a> · <a href="{}">The history</a>', own, whole)

    @admin.action(description="Make the selected version live …")
    def make_live(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._once_confirmed(request, versions, ConfirmedAction("make_live", "Make live", publish_version))

    @admin.action(description="Restore the selected version as a new one …")
    def restore(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._once_confirmed(request, versions, ConfirmedAction("restore", "Restore", restore_version))

    def _once_confirmed(
        self, request: HttpRequest, versions: QuerySet[AgentVersion], act: ConfirmedAction
    ) -> HttpResponse | None:
        """Ask, then act, unless live moved since it was asked."""
        version = self._publishable(request, versions)
        if version is None:
            return None
        if "confirmed" not in request.POST:
            return self._ask(request, version, act)
        try:
            with transaction.atomic(), change(message=request.POST.get("reason", "")[:500]):
                version.agent = version.locked_agent()
                if request.POST.get("live") == str(version.agent.active_version_id):
                    self.message_user(request, act.do(version, version.agent))
                    return None
        except (CircularReference, *DELETED_ERRORS) as refusal:
            self.message_user(
                request,
                refusal.summary if isinstance(refusal, CircularReference) else VERSION_GONE_MESSAGE,
                messages.ERROR,
            )
            return None
        self.message_user(request, LIVE_MOVED_MESSAGE, messages.WARNING)
        return self._ask(request, version, act)

    @admin.action(description="Pin the selected versions …")
    def pin(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._pin_once_confirmed(request, versions, pinned=True)

    @admin.action(description="Unpin the selected versions …")
    def unpin(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> HttpResponse | None:
        return self._pin_once_confirmed(request, versions, pinned=False)

    def _pin_once_confirmed(
        self, request: HttpRequest, versions: QuerySet[AgentVersion], pinned: bool
    ) -> HttpResponse | None:
        """Name the versions, then pin them or let them go, as far as the role allows."""
        chosen = list(versions[: MAX_SELECTED + 1])
        if len(chosen) > MAX_SELECTED:
            self.message_user(request, f"Select at most {MAX_SELECTED} versions.", messages.ERROR)
            return None
        if "confirmed" not in request.POST:
            return self._ask_to_pin(request, chosen, pinned)
        described = 0
        for version in chosen:
            if self.has_change_permission(request, version):
                with suppress(*DELETED_ERRORS):
                    version.update_description(pinned=pinned)
                    described += 1
        self.message_user(request, f"{'Pinned' if pinned else 'Unpinned'} {described} of {len(chosen)} versions.")
        return None

    def _ask_to_pin(self, request: HttpRequest, versions: list[AgentVersion], pinned: bool) -> HttpResponse:
        verb = "Pin" if pinned else "Unpin"
        title = f"{verb} {len(versions)} version{'' if len(versions) == 1 else 's'}"
        said = {"versions": versions, "action": verb.lower(), "verb": verb}
        return confirmation_page(self, request, "versions_app/confirm_pins", title, **said)

    def _ask(self, request: HttpRequest, version: AgentVersion, act: ConfirmedAction) -> HttpResponse:
        """The page that shows what would change, before it does."""
        live = version.agent.active_version
        shown, unfolded = live.snapshot if live else {}, request.POST.getlist("unfold")
        said = {
            "version": version,
            "live": live,
            "sections": build_sections(shown, version.snapshot, side_by_side=False, unfolded=unfolded),
            "unfolded": unfolded,
            "action": act.name,
            "verb": act.verb,
        }
        title = f"{act.verb}: version {version.version_number} of {version.agent.name}"
        return confirmation_page(self, request, "versions_app/confirm", title, **said)

    def _publishable(self, request: HttpRequest, versions: QuerySet[AgentVersion]) -> AgentVersion | None:
        """The one selected version, where the member of staff may publish it."""
        chosen = list(versions.select_related("agent__active_version")[:2])
        if len(chosen) != 1:
            self.message_user(request, "Select one version.", messages.ERROR)
        elif not has_role(request.user, Role.PUBLISHER, chosen[0].agent.owner_id):
            self.message_user(request, "This needs the role publisher.", messages.ERROR)
        else:
            return chosen[0]
        return None
