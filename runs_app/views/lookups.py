"""What the pages of runs share: find, and where things are."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from agents_app.views.access import visible_agents
from runs_app.models import AgentRun


def readable_runs(request: HttpRequest) -> Any:
    """The runs that the caller may read."""
    return AgentRun.objects.for_user(request.user)


def get_run(request: HttpRequest, run_id: UUID) -> AgentRun:
    """One that the caller may not read does not exist."""
    return get_object_or_404(readable_runs(request).select_related("agent", "parent", "thread"), pk=run_id)


def find_agent(request: HttpRequest, run: AgentRun) -> Any:
    """The agent of a run with its pointers, where the caller may still see it."""
    return visible_agents(request).with_versions().filter(pk=run.agent_id).first()
