"""The admin of versions. Only the name, message and pin of a version can be changed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AdminTextareaWidget, AdminTextInputWidget
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_base.concurrent_changes import LockedRowMixin
from access_app.admin_base.lists import CheckedChangeList
from access_app.permissions import has_role
from access_app.role import Role
from agents_app.forms.fields import RawTextField
from versions_app import tasks  # noqa: F401  registers the jobs that superusers start
from versions_app.admin.version_actions import DELETED_ERRORS, VERSION_GONE_MESSAGE, VersionActionsAdmin
from versions_app.compare.sections import build_sections
from versions_app.forms.history import restore_texts
from versions_app.history.change_lines import add_summaries
from versions_app.models import AgentVersion


class VersionForm(forms.ModelForm):
    """The description of a version. The fields of Django would trim its texts and join their lines."""

    name = RawTextField(required=False, max_length=100, widget=AdminTextInputWidget)
    change_message = RawTextField(required=False, max_length=500, widget=AdminTextareaWidget({"rows": 3}))

    def clean(self) -> dict[str, Any]:
        super().clean()
        restore_texts(self)
        return self.cleaned_data


class VersionChangeList(CheckedChangeList):
    """A page of versions, each without a message with a summary of its change."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        # These columns are as large as the instructions.
        return super().get_queryset(request, exclude_parameters).defer("snapshot_text", "agent__instructions")

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # The database sorts only the IDs. With their agents, it would sort whole rows of all versions.
        ids = [*self.result_list.values_list("pk", flat=True)]
        self.result_list = self.queryset.filter(pk__in=ids)
        add_summaries([version for version in self.result_list if not version.custom_message])


@admin.register(AgentVersion)
class AgentVersionAdmin(LockedRowMixin, VersionActionsAdmin):
    """The list of versions, and the page of one."""

    form = VersionForm
    list_display = (
        "__str__",
        "state",
        "change_text",
        "author_name",
        "source",
        "created_at",
        "pinned",
    )
    list_filter = ("source", "pinned", "created_at")
    search_fields = ("agent__id", "agent__name", "name", "change_message", "author_name")
    ordering = ("-id",)  # no index covers the version numbers of all agents
    show_full_result_count = False  # counting a million versions is slow
    list_per_page = 50
    readonly_fields = (
        "agent",
        "version_number",
        "state",
        "page_links",
        "difference",
        "snapshot_json",
        "based_on",
        "author_name",
        "source",
        "created_at",
    )
    fields = ("name", "change_message", "pinned", *readonly_fields)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        versions = super().get_queryset(request).select_related("agent__active_version", "agent__head_version")
        return versions.defer("agent__active_version__snapshot_text", "agent__head_version__snapshot_text")

    def has_change_permission(self, request: HttpRequest, obj: AgentVersion | None = None) -> bool:
        """Allow editors, but nobody while the agent is archived: only the name, message and pin are editable."""
        if not self.has_module_permission(request) or (obj is not None and obj.agent.archived_at is not None):
            return False
        return obj is None or has_role(request.user, Role.EDITOR, obj.agent.owner_id)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> AgentVersion | None:
        """Return the version, with the keys of the folds to open."""
        version: Any = super().get_object(request, object_id, from_field)
        if version is not None:
            # Django gives the method of a read-only field the row alone.
            version.unfolded = request.GET.getlist("unfold")
        displayed: AgentVersion | None = version
        return displayed

    def lock_row(self, request: HttpRequest, object_id: str | None) -> None:
        """Lock the agent of a version, as all changes of its history do, before the form compares what was opened."""
        with suppress(ValidationError, *DELETED_ERRORS):  # Django reports what it does not find
            AgentVersion.objects.only("agent_id").get(pk=unquote(object_id or "")).locked_agent()

    def save_model(self, request: HttpRequest, obj: AgentVersion, form: ModelForm, change: bool) -> None:
        """Update the description only: `save()` would insert a version that was deleted in the meantime."""
        try:
            row = self.lock_agent_of(request, obj, Role.EDITOR)
            obj.update_description_locked(row, **{name: form.cleaned_data[name] for name in form.changed_data})
        except DELETED_ERRORS:
            raise Http404(VERSION_GONE_MESSAGE) from None

    @admin.display(description="Snapshot")
    def snapshot_json(self, version: AgentVersion) -> str:
        text = json.dumps(version.snapshot, indent=2, ensure_ascii=False)
        folded = '<details class="whole-configuration"><summary>All of it as JSON</summary><pre>{}</pre></details>'
        return format_html(folded, text)

    @admin.display(description="Changes")
    def difference(self, version: Any) -> str:
        """Return the differences from the base version as HTML."""
        before = version.agent.versions.filter(version_number=version.based_on or 0).first()
        base = before.snapshot if before else {}
        context = {
            "version": version,
            "before": before,
            "is_base_deleted": version.based_on is not None and before is None,
            "sections": build_sections(base, version.snapshot, side_by_side=False, unfolded=version.unfolded),
            "side_by_side": False,
        }
        return render_to_string("admin/versions_app/difference.html", context)

    def get_changelist(self, request: HttpRequest, **options: object) -> type[ChangeList]:
        return VersionChangeList

    @admin.display(description="Change")
    def change_text(self, version: Any) -> str:
        """Return the message of a version, or what it changed if it has none."""
        return str(version.custom_message or version.summary)

    @admin.display(description="State")
    def state(self, version: AgentVersion) -> str:
        is_live = version.pk == version.agent.active_version_id
        is_draft = version.agent.has_draft and version.pk == version.agent.head_version_id
        return "live" if is_live else "draft" if is_draft else "–"

    @admin.display(description="Pages")
    def page_links(self, version: AgentVersion) -> str:
        version_url = reverse("versions:view", args=[version.agent_id, version.version_number])
        history_url = reverse("versions:list", args=[version.agent_id])
        return format_html('<a href="{}">This version</a> · <a href="{}">History</a>', version_url, history_url)
