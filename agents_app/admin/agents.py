"""The admin of agents: list, form and permissions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db import transaction
from django.db.models import F, Q, QuerySet, Value
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from access_app.admin_base.concurrent_changes import CheckedAgainMixin
from access_app.admin_base.lists import OwnerFilter, TeamColumnMixin
from access_app.admin_base.staff_access import StaffAccessMixin
from access_app.admin_base.staff_roles import staff_has_role
from access_app.permissions import effective_role, has_role
from access_app.role import Role
from agents_app.admin.actions import ACTION_TITLES, AgentActionsAdmin
from agents_app.admin.forms import MODEL_INPUTS, READ_ONLY_FIELDS, AgentAdminForm
from agents_app.configuration import schema
from agents_app.configuration.display import config_sections, is_set
from agents_app.configuration.field_labels import FIELD_LABELS

# Django calls save_model() with an argument named `change`.
from agents_app.editing.change_context import change as change_context
from agents_app.editing.editor_saves import publish_locked, save_draft_locked
from agents_app.editing.version_refusals import GateNotMet
from agents_app.forms.field_values import MODEL_SETTINGS
from agents_app.models import Agent
from agents_app.views.access import sub_agent_names
from agents_app.views.status import find_warnings

MODEL_SETTINGS_WITH_INPUT = {"provider", "name", *MODEL_SETTINGS.values()}
REST_SECTION = "Tools and everything else"
# The form of a new agent, to which the rest is added in the editor.
NEW_AGENT_REST: Any = (
    REST_SECTION,
    {"fields": ["memory"], "description": "Add tools, sub-agents and everything else in the editor."},
)
HISTORY_SECTION: Any = ("History", {"fields": ["live", "state", "history", "page", "created_at", "updated_at"]})
# Without the inputs that are not columns, whose values Django does not find.
READ_ONLY_SECTIONS: Any = [
    (None, {"fields": ["team", "name", "description", "instructions"]}),
    ("Model, tools and everything else", {"fields": ["configuration"]}),
    HISTORY_SECTION,
]


class DraftFilter(admin.SimpleListFilter):
    """A filter by agents with or without a draft."""

    title = "draft"
    parameter_name = "draft"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("yes", "With a draft"), ("no", "Without a draft")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        # By the content: a head with the same configuration as the live version is not a draft.
        without_draft = Q(head_version__snapshot_hash=F("active_version__snapshot_hash"))
        if self.value() == "yes":
            return queryset.exclude(without_draft)
        return queryset.filter(without_draft) if self.value() == "no" else queryset


class ArchivedFilter(admin.SimpleListFilter):
    """A filter by archived agents, which the list leaves out by default."""

    title = "archived"
    parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("yes", "Archived"), ("all", "All")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices, with a name for the default one."""
        default, *others = super().choices(changelist)
        yield {**default, "display": "Not archived"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        if self.value() == "all":
            return queryset
        return queryset.filter(archived_at__isnull=self.value() != "yes")


@admin.register(Agent)
class AgentAdmin(TeamColumnMixin, CheckedAgainMixin, StaffAccessMixin, AgentActionsAdmin):
    """The admin of the agents that the user may see."""

    form = AgentAdminForm
    list_display = ("name", "id", "team", "live", "state", "updated_at", "page")
    list_filter = (OwnerFilter, DraftFilter, ArchivedFilter, "updated_at")
    search_fields = ("id", "name", "description", "instructions")
    list_select_related = ("active_version", "head_version")
    action_roles: ClassVar = dict.fromkeys(
        ("publish_drafts", "archive_agents", "unarchive_agents", "delete_agents"), Role.PUBLISHER
    )
    ordering = ("-updated_at", "id")
    readonly_fields = ("configuration", "live", "state", "history", "page", "created_at", "updated_at")
    list_per_page = 50
    fieldsets: ClassVar = [
        (None, {"fields": ["id", "owner_id", "name", "description", "instructions"]}),
        ("Model", {"fields": [*MODEL_INPUTS]}),
        (REST_SECTION, {"fields": ["memory", "configuration"]}),
        HISTORY_SECTION,
        ("This change", {"fields": ["change_message", "publish", "owner_change_confirmed", "revision", "agent_key"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """Return the visible agents with `granted`, the user's role for each, and `may_duplicate`."""
        # Annotated, because Django gives the method of a column the row alone, without the request.
        may_duplicate: dict[str, Any] = {"may_duplicate": Value(self.has_add_permission(request))}
        agents = Agent.objects.for_user(request.user).with_versions().annotate(**may_duplicate)
        # Superusers need no membership, which is all that `with_role` reads.
        if request.user.is_superuser:
            highest = {"granted": Value(str(effective_role(request.user, None)))}
            return agents.annotate(**highest)
        return agents.with_role(request.user)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Agent | None:
        """Return the agent with what `configuration` needs: `agent_names` of its sub-agents, and `is_read_only`."""
        agent: Agent | None = super().get_object(request, object_id, from_field)
        if agent is not None:
            vars(agent)["agent_names"] = sub_agent_names(request, {"agents": agent.agents})
            vars(agent)["is_read_only"] = not self.has_change_permission(request, agent)
        return agent

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        sections = super().get_fieldsets(request, obj)
        if obj is None:
            return [
                without_fields(NEW_AGENT_REST if section[0] == REST_SECTION else section, "owner_change_confirmed")
                for section in sections
                if section[0] != "History"
            ]
        if not self.has_change_permission(request, obj):
            return READ_ONLY_SECTIONS
        first, *rest = sections
        return [without_fields(first, "id"), *rest]

    def get_form(self, request: HttpRequest, obj: Agent | None = None, change: bool = False, **kwargs: object) -> Any:
        """Return the form class unchanged, as the default would replace its fields by model fields."""
        return type("AgentAdminForm", (AgentAdminForm,), {"user": request.user})

    def has_view_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        return self.has_module_permission(request) and (obj is None or self._has_role(request, Role.VIEWER, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._has_role(request, Role.EDITOR)

    def has_change_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Allow editors, but nobody while the agent is archived: its page is read-only then."""
        if obj is not None and obj.archived_at is not None:
            return False
        return self._has_role(request, Role.EDITOR, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        return self._has_role(request, Role.PUBLISHER, obj)

    def _has_role(self, request: HttpRequest, role: Role, agent: Agent | None = None) -> bool:
        if not self.has_module_permission(request):
            return False
        if agent is None:
            return staff_has_role(request, role)
        return has_role(request.user, role, agent.owner_id)

    def save_model(self, request: HttpRequest, obj: Agent, form: AgentAdminForm, change: bool) -> None:
        with change_context(message=form.cleaned_data["change_message"]):
            if change:
                self.save_or_publish(request, form)
                form.row.change_owner(form.cleaned_data["owner_id"])
            else:
                obj.save()
        # Read again: what was saved is `form.row`, not `obj`.
        for warning in find_warnings([Agent.objects.with_versions().get(pk=obj.pk)])[obj.pk]:
            self.message_user(request, warning.text, messages.WARNING)

    def save_or_publish(self, request: HttpRequest, form: AgentAdminForm) -> None:
        """Save the changes as a draft, or publish them. What misses a release gate stays a draft, with the reason."""
        fields = form.changed_fields()
        if form.cleaned_data["publish"]:
            try:
                # A savepoint: the admin's own transaction goes on to save the draft.
                with transaction.atomic():
                    publish_locked(form.row, fields)
            except GateNotMet as error:
                self.message_user(request, f"Saved as a draft. {error.summary}", messages.WARNING)
                # The refused publication has set the fields of the row in memory.
                form.row = Agent.objects.get_locked(form.row.pk)
            else:
                if form.row.gate_warning:
                    self.message_user(request, form.row.gate_warning, messages.WARNING)
                return
        save_draft_locked(form.row, fields)

    @admin.display(description="Live")
    def live(self, agent: Agent) -> str:
        return f"v{agent.active_version.version_number}" if agent.active_version else "–"

    @admin.display(description="Draft")
    def state(self, agent: Agent) -> str:
        draft = f"draft v{agent.head_version.version_number}" if agent.has_draft and agent.head_version else "none"
        return f"{draft}, archived" if agent.archived_at else draft

    @admin.display(description="Configuration")
    def configuration(self, agent: Agent) -> SafeString:
        """Return what has no input here, as the page of a version shows it, with a link to the editor."""
        stored = json.loads(agent.snapshot_text)
        names = [schema.WIRE_NAMES[name] for name in READ_ONLY_FIELDS]
        if getattr(agent, "is_read_only", False):
            names = ["model", "memory", *names]
        displayed = {name: stored.get(name) for name in names}
        if isinstance(agent.memory, dict):
            displayed["memory"] = agent.memory
        if agent.model.keys() - MODEL_SETTINGS_WITH_INPUT:
            displayed["model"] = agent.model
        context = {
            "parts": config_sections(displayed, find_warnings([agent])[agent.pk], getattr(agent, "agent_names", None)),
            "unset": [FIELD_LABELS[name] for name in names if not is_set(displayed, name)],
            "json": json.dumps(stored, ensure_ascii=False, indent=2),
            "editor_url": reverse("agents:edit", args=[agent.pk]),
        }
        return render_to_string("admin/agents_app/agent/_configuration.html", context)

    @admin.display(description="Versions")
    def history(self, agent: Agent) -> str:
        versions = reverse("admin:versions_app_agentversion_changelist")
        activations = reverse("admin:versions_app_activation_changelist")
        links = '<a href="{}?agent__id__exact={}">All versions</a> · <a href="{}?agent__id__exact={}">Live history</a>'
        return format_html(links, versions, agent.pk, activations, agent.pk)

    @admin.display(description="Actions")
    def page(self, agent: Agent) -> str:
        """Return links to the actions that the user's role for the agent allows."""
        role, is_archived = Role(agent.granted or Role.VIEWER), agent.archived_at is not None
        actions = ["duplicate"] if getattr(agent, "may_duplicate", False) else []
        if role.covers(Role.EDITOR) and not is_archived:
            actions += ["snapshot", *(["discard_draft"] if agent.has_draft else [])]
        if role.covers(Role.PUBLISHER):
            actions.append("unarchive" if is_archived else "archive")
        links = [("Open", reverse("agents:edit", args=[agent.pk]))]
        links += [
            (ACTION_TITLES[action], reverse(f"admin:agents_app_agent_{action}", args=[quote(agent.pk)]))
            for action in actions
        ]
        return format_html_join(" · ", '<a href="{1}">{0}</a>', links)


def without_fields(section: Any, *names: str) -> Any:
    """Return a section of `fieldsets` without these fields."""
    title, options = section
    return title, {**options, "fields": [field for field in options["fields"] if field not in names]}
