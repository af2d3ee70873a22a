"""Conditional requests: If-Match and If-None-Match."""

from __future__ import annotations

import re
from typing import Any

from rest_framework.request import Request

from agentcms.errors import PreconditionFailed
from agentcms.wire.timestamps import format_timestamp
from agents_app.api import representation
from agents_app.models import Agent

_ETAG = re.compile(r'(?:W/)?"([^"]*)"')


def validate_if_match(request: Request, agent: Agent) -> None:
    """Refuse a write whose `If-Match` names another state; the registry's part of a tag does not count."""
    header = request.META.get("HTTP_IF_MATCH")
    if header is None or header.strip() == "*":  # a blank one is no match: the server hands over odd bytes as blank
        return
    if agent.etag not in {tag.rpartition(".")[0] for tag in _ETAG.findall(header)}:
        raise PreconditionFailed(describe_last_change(agent), representation.etag(agent.row_key, agent.revision))


def describe_last_change(agent: Agent) -> str:
    """What changed the agent last, by whom and when, in a sentence."""
    version: Any = agent.versions.order_by("-version_number").first()
    activation: Any = agent.activations.first()
    # A save that went live has one time for both, and is told as a save.
    newest = max(filter(None, (version, activation)), key=lambda each: each.created_at)
    who, at = newest.author_name or "The system", format_timestamp(newest.created_at)
    if agent.updated_at > newest.created_at:
        done = f"Somebody handed the agent over or dropped its draft at {format_timestamp(agent.updated_at)}"
    elif newest is version:
        done = f"{who} saved version {version.version_number} at {at}{describe_save(agent, version)}"
    else:
        done = f"{who} made version {activation.to_version_number} live at {at}"
    return f"{done}. Read the agent and try again."


def describe_save(agent: Agent, version: Any) -> str:
    """Whether a version went live as it was saved, and what it changed, as the rest of a sentence."""
    state = ", live at once" if version.pk == agent.active_version_id else ", as a draft" if agent.has_draft else ""
    return f"{state}, changing {', '.join(version.changed_fields)}" if version.changed_fields else state


def is_not_modified(request: Request, etag: str) -> bool:
    """Whether `If-None-Match` names this state."""
    header = request.META.get("HTTP_IF_NONE_MATCH", "").strip()
    return bool(header) and (header == "*" or etag.strip('"') in _ETAG.findall(header))
