"""The tab Quality of an agent: its scores by version, its experiments and its release gates."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents_app.views.access import get_agent
from agents_app.views.header import AgentTab, header_context
from evals_app.gates.checking import check_gates, gates_for
from evals_app.models import Experiment
from evals_app.quality.plots import build_plots
from versions_app.models.version import get_head_version

MAX_EXPERIMENTS = 100


@require_safe
@login_required
def quality(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show the scores of an agent by version as points with intervals, with the same figures in a table."""
    agent = get_agent(request, agent_id)
    experiments = Experiment.objects.for_user(request.user).filter(target_type="agent", target_id=agent.pk)
    rows = list(experiments.select_related("dataset").order_by("-created_at")[:MAX_EXPERIMENTS])
    head = get_head_version(agent)
    context: dict[str, Any] = header_context(request, agent, AgentTab.QUALITY)
    context |= {
        "experiments": rows[:20],
        "plots": build_plots([row for row in rows if row.status == Experiment.Status.COMPLETED]),
        "gates": check_gates(agent, head, gates_for(agent).select_related("dataset")),
        "head": head,
    }
    return render(request, "evals/quality.html", context)
