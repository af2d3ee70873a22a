"""Conditional requests with `If-Match` and `If-None-Match`."""

from __future__ import annotations

import re

from rest_framework.request import Request

from agentcms.errors import PreconditionFailed
from agentcms.wire.timestamps import format_timestamp
from agents_app.api import representation
from agents_app.models import Agent
from versions_app.models import Activation, AgentVersion

_ETAG = re.compile(r'(?:W/)?"([^"]*)"')


def validate_if_match(request: Request, agent: Agent) -> None:
    """Raise PreconditionFailed if `If-Match` names another state. The registry's part of the tag is ignored."""
    header = request.META.get("HTTP_IF_MATCH")
    # A blank header is a mismatch: the server passes invalid bytes as blank.
    if header is None or header.strip() == "*":
        return
    if agent.etag not in {tag.rpartition(".")[0] for tag in _ETAG.findall(header)}:
        raise PreconditionFailed(describe_last_change(agent), representation.etag(agent.row_key, agent.revision))


def describe_last_change(agent: Agent) -> str:
    """Describe the last change of the agent, with its author and time."""
    version = AgentVersion.objects.filter(agent=agent).first()
    activation = Activation.objects.filter(agent=agent).first()
    # A published save has the same time as its activation and is described as a save.
    records: list[AgentVersion | Activation] = [record for record in (version, activation) if record is not None]
    newest = max(records, key=lambda record: record.created_at)
    author, time = newest.author_name or "The system", format_timestamp(newest.created_at)
    if agent.updated_at > newest.created_at:
        change = describe_change_without_version(agent)
    elif isinstance(newest, AgentVersion):
        change = f"{author} saved version {newest.version_number} at {time}{describe_save(agent, newest)}"
    else:
        change = f"{author} published version {newest.to_version_number} at {time}"
    return f"{change}. Read the agent and try again."


def describe_change_without_version(agent: Agent) -> str:
    if agent.archived_at is not None:
        return f"{agent.archived_by_name or 'The system'} archived the agent at {format_timestamp(agent.archived_at)}"
    return (
        "The owner changed, the draft was discarded, or the agent was unarchived or restored at "
        f"{format_timestamp(agent.updated_at)}"
    )


def describe_save(agent: Agent, version: AgentVersion) -> str:
    """Describe whether a version was published with its save, and what it changed."""
    state = " and published it" if version.pk == agent.active_version_id else " as a draft" if agent.has_draft else ""
    return f"{state}, changing {', '.join(version.changed_fields)}" if version.changed_fields else state


def is_not_modified(request: Request, etag: str) -> bool:
    """Return whether `If-None-Match` names this state."""
    header = request.META.get("HTTP_IF_NONE_MATCH", "").strip()
    return bool(header) and (header == "*" or etag.strip('"') in _ETAG.findall(header))
