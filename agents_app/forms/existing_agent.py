"""The editor's form of an existing agent."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import QueryDict
from django.urls import reverse

from access_app.caller import Caller
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.forms.editor import AgentEditForm
from agents_app.forms.gates import BypassReasonField
from agents_app.forms.objects.field import get_submitted_list
from agents_app.forms.pickers import KIND_BY_FIELD
from agents_app.models import Agent
from versions_app.compare.merge import Merge, merge_snapshots
from versions_app.models import AgentVersion
from versions_app.models.version import get_head_version, get_live_version


class ExistingAgentForm(AgentEditForm):
    """The form of an existing agent. It knows the head and live versions that it was opened on."""

    head = forms.UUIDField(required=False, widget=forms.HiddenInput)
    live = forms.UUIDField(required=False, widget=forms.HiddenInput)
    bypass_reason = BypassReasonField()

    @classmethod
    def for_agent(cls, agent: Agent, user: Caller) -> ExistingAgentForm:
        """Build the unbound form, with the head's configuration."""
        return cls(base=head_configuration(agent), user=user, agent=agent)

    @classmethod
    def from_request(cls, data: QueryDict, agent: Agent, user: Caller) -> ExistingAgentForm:
        """Build the submitted form. If the version it was opened on was pruned, the head is used instead."""
        # A change is what differs from what the user saw. From a newer head, changes of others would differ too.
        opened = find_version_by_id(agent, parse_uuid(data.get("head", "")))
        base = agent.resolved(opened) if opened else head_configuration(agent)
        return cls(data, base=base, user=user, agent=agent)

    def __init__(self, *args: Any, agent: Agent, **kwargs: Any) -> None:
        super().__init__(*args, agent=agent, **kwargs)
        # These are in a dialog outside the form element, and no unsaved text.
        for name in ("version_name", "message", "bypass_reason"):
            self.fields[name].widget.attrs |= {"form": "agent-form", "data-of-save": True}
        self.initial = {**self.initial, "head": agent.head_version_id, "live": agent.active_version_id}

    @property
    def fields_url(self) -> str:
        return reverse("agents:fields", args=[self.agent.pk])

    @property
    def option_urls(self) -> dict[str, str]:
        return {name: reverse("agents:options", args=[self.agent.pk, name]) for name in KIND_BY_FIELD}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.publishes and self.provider_problem and "provider" not in self.errors:
            self.add_error("provider", self.provider_problem)
        return cleaned

    @property
    def accepted_versions(self) -> list[str]:
        """Return the head and live versions that the user accepted in a conflict, and whether to publish."""
        return str(self.data.get("keep_on", "")).split()

    @property
    def publishes(self) -> bool:
        # The button of a conflict says it in its own value, because a form sends only the button that was pressed.
        return (self.accepted_versions[2:] or [str(self.data.get("publish"))]) == ["yes"]

    @property
    def is_confirmed(self) -> bool:
        """Return whether the user confirmed that versions of others are published."""
        return self.data.get("confirmed") == "yes"

    @property
    def accepts_definitions(self) -> bool:
        """True if the user accepts changed definitions of MCP tools, which the page still marks as changed."""
        return bool(get_submitted_list(self.data, "mcp-accept"))

    @property
    def merges(self) -> bool:
        """Return whether the changes are to be merged with those saved since the form was opened."""
        return self.data.get("merge") == "yes"

    def merge_with(self, head: AgentVersion) -> Merge | None:
        """Merge the changes of a valid form with those of a newer head.

        Return None if the version that the form was opened on was pruned.
        """
        opened = find_version_by_id(self.agent, self.cleaned_data.get("head"))
        if opened is None:
            return None
        mine = schema.to_snapshot(self.changed_fields(), opened.snapshot)
        return merge_snapshots(opened.snapshot, mine, head.snapshot)

    def fields_to_save(self, row: Agent) -> JSONObject:
        """Return the fields to write on top of the head of a locked row. Raise ConfigError if a merge is invalid."""
        merge = self.merge_with(get_head_version(row)) if self.merges else None
        return self.changed_fields() if merge is None else schema.validate_partial(merge.snapshot)

    def find_conflict(self, row: Agent, *, publishes: bool) -> str:
        """Return which version conflicts with the form since it was opened: "head", "live" or an empty text."""
        # Exactly the versions that the user accepted: what was saved since is another conflict.
        if self.accepted_versions[:2] == [str(row.head_version_id), str(row.active_version_id)]:
            return "" if not self.merges or self.can_merge(row) else "head"
        if not (publishes or self.merges or self.changed_fields()):
            return ""  # nothing would be saved
        if not self.pointer_unchanged(row, "head"):
            return "head"
        # Only publishing replaces the live version.
        return "live" if publishes and not self.pointer_unchanged(row, "live") else ""

    def can_merge(self, row: Agent) -> bool:
        merge = self.merge_with(get_head_version(row))
        return merge is not None and not merge.touching

    def pointer_unchanged(self, row: Agent, name: str) -> bool:
        """Return whether the head or live version has the same snapshot as when the form was opened."""
        version = get_head_version(row) if name == "head" else get_live_version(row)
        opened_id = self.cleaned_data.get(name)
        if opened_id == version.pk:
            return True
        opened = find_version_by_id(row, opened_id)
        # Another version with the same content is not a conflict: nothing of it would be lost.
        return opened is not None and opened.snapshot_hash == version.snapshot_hash


def head_configuration(agent: Agent) -> JSONObject:
    """Return the configuration of an agent's head, which is that of its row, by Python name."""
    return {name: getattr(agent, name) for name in schema.FIELDS}


def find_version_by_id(agent: Agent, version_id: UUID | None) -> AgentVersion | None:
    """Return a version of the agent, or None if it was pruned."""
    return AgentVersion.objects.filter(agent=agent, pk=version_id).first() if version_id else None
