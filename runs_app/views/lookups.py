"""Lookups for the pages of runs."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from agents_app.models import Agent
from agents_app.views.access import visible_agents
from runs_app.models import AgentRun
from runs_app.models.run_queryset import AgentRunQuerySet


def readable_runs(request: HttpRequest) -> AgentRunQuerySet:
    """Return the runs that the user may read, `with_roles`."""
    # The messages of earlier segments may be very long, and only the next segment reads them.
    return AgentRun.objects.for_user(request.user).with_roles(request.user).defer("conversation")


def get_run(request: HttpRequest, run_id: UUID) -> AgentRun:
    """Return a run that the user may read. Raise Http404 for any other."""
    runs = readable_runs(request).select_related("agent", "parent", "thread").defer("parent__conversation")
    return get_object_or_404(runs, pk=run_id)


def find_agent(request: HttpRequest, run: AgentRun) -> Agent | None:
    """Return the agent of a run, or None if the user may not see it."""
    return visible_agents(request).with_versions().filter(pk=run.agent_id).first()
