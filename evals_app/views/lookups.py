"""Lookups that the pages of evaluations share."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from access_app.caller import Caller
from access_app.permissions import granted_covers, require_granted_role
from access_app.role import Role
from agents_app.models import Agent
from evals_app.models import Dataset, Experiment, ExperimentResult, ReleaseGate
from runs_app.models import AgentRun

ROWS_PER_PAGE = 50
MAX_LISTED_GATES = 10  # in the question before a dataset or a scorer is deleted


def get_page_dataset(request: HttpRequest, dataset_id: str, role: Role = Role.VIEWER) -> Dataset:
    """Return a dataset. Raise Http404 if the user may not see it, and RoleRequired without the role."""
    datasets = Dataset.objects.for_user(request.user).with_role(request.user)
    dataset = get_object_or_404(datasets, pk=dataset_id)
    if role != Role.VIEWER:
        require_granted_role(request.user, role, dataset)
    return dataset


def earlier_version(dataset: Dataset, text: str) -> int | None:
    """Return the number of a version before the current one that a query names, or None."""
    # Below ten digits: Python converts no number of thousands of digits.
    number = int(text) if text.isdecimal() and len(text) < 10 else dataset.version
    return number if number < dataset.version else None


def may_edit(request: HttpRequest, dataset: Dataset) -> bool:
    return granted_covers(request.user, Role.EDITOR, dataset.granted)


def list_gates(request: HttpRequest, gates: QuerySet[ReleaseGate]) -> QuerySet[ReleaseGate]:
    """Return the first of some release gates: those of a whole team, and of agents that the user can see."""
    agents = Agent.objects.for_user(request.user).values("pk")
    visible = gates.filter(Q(agent=None) | Q(agent__in=agents))
    return visible.select_related("agent").order_by("pk")[:MAX_LISTED_GATES]


def get_page_experiment(request: HttpRequest, experiment_id: UUID | None) -> Experiment:
    """Return an experiment with its dataset. Raise Http404 if the user may not see it."""
    rows = Experiment.objects.for_user(request.user).with_target_names(request.user).select_related("dataset")
    experiment: Experiment | None = rows.filter(pk=experiment_id).first() if experiment_id else None
    if experiment is None:
        raise Http404
    return experiment


# All members of a team see its experiments, but a run only those who started it and publishers.
def find_readable_runs(user: Caller, results: Iterable[ExperimentResult]) -> set[UUID]:
    """Return the IDs of the runs of results that a user may open."""
    run_ids = [result.run_id for result in results if result.run_id]
    return set(AgentRun.objects.for_user(user).order_by().filter(pk__in=run_ids).values_list("pk", flat=True))
