"""Notes of release gates on a version that somebody is about to publish."""

from __future__ import annotations

from django.http import HttpRequest

from access_app.role import Role
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping
from agents_app.models import Agent
from agents_app.views.access import has_role_for
from versions_app.models import AgentVersion
from versions_app.publishing import publish_notes_of


def gate_context(request: HttpRequest, agent: Agent, version: AgentVersion) -> dict[str, object]:
    """Return why gates refuse a version or warn of it, and whether the user may bypass them."""
    refusal, warning = publish_notes_of(agent, version)
    return {
        "gate_refusal": refusal,
        "gate_warning": warning,
        "may_bypass": has_role_for(request, agent, Role.MANAGER),
    }


def unsaved_version(agent: Agent, number: int, snapshot: JSONMapping) -> AgentVersion:
    """Return the version that publishing a snapshot would make, without saving it."""
    return AgentVersion(agent=agent, version_number=number, snapshot_hash=sha256_hex(canonical(snapshot)))
