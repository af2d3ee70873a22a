"""The tab Quality of an agent: its scores by version, its experiments and its release gates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access_app.permissions import granted_covers
from access_app.role import Role
from agentcms.web.template_context import TemplateContext
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from agents_app.views.access import get_agent
from agents_app.views.agent_header import AgentTab, header_context
from evals_app.experiments.scoring import scorer_title
from evals_app.gates.checking import check_gates, gates_for
from evals_app.models import Experiment, ReleaseGate
from evals_app.quality.answers_in_use import find_online_scores
from evals_app.quality.plots import build_plots
from versions_app.models import AgentVersion
from versions_app.models.version import get_head_version

MAX_EXPERIMENTS = 100  # in the plots
MAX_LISTED = 20


@require_safe
@login_required
def quality(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show the scores of an agent by version as points with intervals, with the same figures in a table."""
    agent = get_agent(request, agent_id)
    experiments = (
        Experiment.objects.for_user(request.user)
        .with_target_names(request.user)
        .filter(target_type="agent", target_id=agent.pk)
    )
    newest = experiments.select_related("dataset").order_by("-created_at")
    # By itself: the latest experiments may all have failed.
    completed = newest.filter(status=Experiment.Status.COMPLETED)[:MAX_EXPERIMENTS]
    head = get_head_version(agent)
    online = find_online_scores(agent)
    titles = {score.scorer: scorer_title(score.scorer, agent.owner_id) for score in online}
    gates = gate_rows(agent, head, newest.unfinished()[:MAX_EXPERIMENTS])
    context: TemplateContext = header_context(request, agent, AgentTab.QUALITY)
    context |= {
        "experiments": newest[:MAX_LISTED],
        "plots": build_plots(list(completed), online, titles, bars_of(gates)),
        "gates": gates,
        "head": head,
        "may_manage": granted_covers(request.user, Role.MANAGER, agent.granted),
    }
    return render(request, "evals/quality.html", context)


def bars_of(gates: Sequence[JSONObject]) -> dict[tuple[str, str], list[float]]:
    """Return the lowest means that gates ask for, by scorer and dataset."""
    bars: dict[tuple[str, str], list[float]] = {}
    for gate in (row["state"].gate for row in gates):
        if gate.statistic == ReleaseGate.Statistic.MEAN and gate.minimum is not None:
            bars.setdefault((gate.scorer, gate.dataset_id), []).append(gate.minimum)
    return bars


def gate_rows(agent: Agent, head: AgentVersion, unfinished: Iterable[Experiment]) -> list[TemplateContext]:
    """Return the gates with their state for the newest version, and the experiment that runs for each."""
    states = check_gates(agent, head, gates_for(agent))
    return [
        {
            "state": state,
            "scorer": scorer_title(state.gate.scorer, agent.owner_id),
            "running": next((row for row in unfinished if row.dataset_id == state.gate.dataset_id), None),
        }
        for state in states
    ]
