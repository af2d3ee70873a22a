"""Release gates: which apply to an agent, and whether a version meets them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONObject
from agents_app.models import Agent
from agents_app.models.querysets import usable_owners
from evals_app.experiments.figures import SCORE_DIGITS, score_text
from evals_app.experiments.scoring import live_scorer_versions, scorer_title
from evals_app.models import Experiment, ReleaseGate
from versions_app.models import AgentVersion

Statistic = ReleaseGate.Statistic
FIGURES = {Statistic.MEAN: "mean", Statistic.PASS_RATE: "passRate", Statistic.MIN: "min"}


@dataclass(frozen=True)
class GateState:
    """The state of a gate for a version: met, or what is missing."""

    gate: ReleaseGate
    is_met: bool
    message: str
    experiment: Experiment | None = None
    value: float | None = None
    warning: str = ""
    needs_live: bool = False  # the live version has no experiment, with which this one is compared


def gates_for(agent: Agent) -> QuerySet[ReleaseGate]:
    """Return the gates of an agent and of all agents of its team."""
    return gates_by_ids(agent.pk, agent.owner_id)


def gates_of_agents(agents: Sequence[Agent]) -> dict[str, list[ReleaseGate]]:
    """Return the gates of each agent and of all agents of its team, by the ID of the agent."""
    of_agents = Q(agent__in=[agent.pk for agent in agents])
    of_teams = Q(agent=None, owner_id__in={agent.owner_id for agent in agents})
    gates = [*ReleaseGate.objects.select_related("dataset").filter(of_agents | of_teams)]
    return {
        agent.pk: [
            gate
            for gate in gates
            if gate.agent_id == agent.pk or (gate.agent_id is None and gate.owner_id == agent.owner_id)
        ]
        for agent in agents
    }


def gates_by_ids(agent_id: str, owner_id: str) -> QuerySet[ReleaseGate]:
    """Return the gates of the agent and of the team that have these IDs."""
    gates = ReleaseGate.objects.select_related("dataset")
    return gates.filter(Q(agent=agent_id) | Q(agent=None, owner_id=owner_id))


class CheckedVersion(NamedTuple):
    """A version of an agent, and the gates that it must meet."""

    agent: Agent
    version: AgentVersion
    gates: Sequence[ReleaseGate]


class SharedEvidence(NamedTuple):
    """Experiments and other rows that the gates of several agents look at."""

    experiments: Mapping[str, Sequence[Experiment]]  # by the ID of the agent, the newest first
    live_versions: Mapping[str, tuple[str, str]]  # the owner and the live version of sub-agents, by the ID of each
    live_scorers: JSONObject


class Evidence:
    """The experiments that the gates of an agent look at for a version, read once for all of them."""

    def __init__(self, checked: CheckedVersion, rows: SharedEvidence) -> None:
        agent = checked.agent
        self.version_hash, self.live_hash = checked.version.snapshot_hash, live_hash_of(checked)
        self.experiments = rows.experiments.get(agent.pk, ())
        owners = usable_owners(agent.owner_id)
        self.live_sub_agents = {key: live for key, (owner, live) in rows.live_versions.items() if owner in owners}
        self.live_scorers = rows.live_scorers

    def find(self, snapshot_hash: str, gate: ReleaseGate) -> Experiment | None:
        """Return the last experiment over the dataset of a gate with a configuration and the scorer, or None."""
        place = (snapshot_hash, gate.dataset_id, tested_dataset_version(gate))
        of_place = (
            row for row in self.experiments if (row.snapshot_hash, row.dataset_id, row.dataset_version) == place
        )
        return next((row for row in of_place if uses_scorer(row, gate.scorer)), None)

    def describe_missing(self, gate: ReleaseGate) -> str:
        """Return that no experiment has tested the version, or none over the items that the gate asks for."""
        place = (self.version_hash, gate.dataset_id)
        of_dataset = (row for row in self.experiments if (row.snapshot_hash, row.dataset_id) == place)
        items = f" over version {tested_dataset_version(gate)} of the dataset"
        is_tested = any(uses_scorer(row, gate.scorer) for row in of_dataset)
        return f"no experiment has tested it{items if is_tested else ''}."

    def statistic(self, experiment: Experiment, gate: ReleaseGate) -> float | None:
        """Return the statistic of a gate in an experiment, or None if it has no such score."""
        # A difference is that of the means.
        own = figure_of(experiment, gate.scorer, FIGURES.get(Statistic(gate.statistic), "mean"))
        if gate.statistic != Statistic.DIFFERENCE or own is None:
            return own
        before = self.find(self.live_hash, gate) if self.live_hash else None
        base = figure_of(before, gate.scorer, "mean") if before is not None else None
        return round(own - base, SCORE_DIGITS) if base is not None else None

    def live_fault(self, gate: ReleaseGate) -> str | None:
        """Return why a version cannot be compared with the live one, or None if it can or need not be."""
        if gate.statistic != Statistic.DIFFERENCE:
            return None
        before = self.find(self.live_hash, gate) if self.live_hash else None
        if before is None:
            return "no experiment has tested the live version."
        if figure_of(before, gate.scorer, "mean") is None:
            return "the last experiment of the live version has no such score."
        if is_too_old(before, gate):
            days = pluralize(gate.max_age_days or 0, "day")
            return f"the last experiment of the live version is older than {days}."
        failure = scoring_fault(before, gate)
        return f"of the live version, {failure}" if failure is not None else None

    def changes_since(self, experiment: Experiment, gate: ReleaseGate) -> str:
        """Return warnings of what has changed since an experiment that meets or misses a gate, or a blank text."""
        warnings = (self.moved_sub_agents(experiment), self.changed_scorer(experiment, gate))
        return " ".join(filter(None, warnings))

    def changed_scorer(self, experiment: Experiment, gate: ReleaseGate) -> str:
        """Return a warning if another version of the scorer is live, or scored the live version; else a blank text."""
        tested = experiment.scorer_versions.get(gate.scorer)
        before = self.find(self.live_hash, gate) if gate.statistic == Statistic.DIFFERENCE else None
        others = {"is live": self.live_scorers, "scored the live version": before.scorer_versions if before else {}}
        numbers = {words: versions.get(gate.scorer) for words, versions in others.items()}
        differing = [f"v{number} {words}" for words, number in numbers.items() if number not in (None, tested)]
        if tested is None or not differing:
            return ""
        return f"The experiment was scored by v{tested} of '{gate.scorer}', but {' and '.join(differing)}."

    def moved_sub_agents(self, experiment: Experiment) -> str:
        """Return a warning if sub-agents have other live versions than in the experiment, or a blank text."""
        tested = experiment.sub_agent_versions
        # One that was deleted or handed to another team has no live version here, and counts too.
        moved = sorted(key for key, version in tested.items() if self.live_sub_agents.get(key) != version)
        return f"Sub-agents changed since the experiment: {', '.join(moved)}." if moved else ""


def tested_dataset_version(gate: ReleaseGate) -> int:
    """Return the version of the dataset over which a gate asks for an experiment."""
    # Without a version the gate asks for the current items, some of which an earlier experiment has not seen.
    return gate.dataset_version if gate.dataset_version is not None else gate.dataset.version


def live_hash_of(checked: CheckedVersion) -> str:
    """Return the hash of the live version if a gate compares with it, or a blank text."""
    needs_live = any(gate.statistic == Statistic.DIFFERENCE for gate in checked.gates)
    live = checked.agent.active_version if needs_live else None
    return live.snapshot_hash if live is not None else ""


def find_evidence(checked: Sequence[CheckedVersion]) -> SharedEvidence:
    """Return what the gates of several agents look at, by few queries for any number of agents."""
    gates = [gate for move in checked for gate in move.gates]
    # By their content: a version that equals a tested one, such as a restored one, needs no other experiment.
    hashes = {move.version.snapshot_hash for move in checked} | {*map(live_hash_of, checked)}
    # Without the blank hash, which stands for no live version, and which some experiments have.
    rows = complete_experiments([move.agent.pk for move in checked]).filter(
        snapshot_hash__in=hashes - {""}, dataset__in={gate.dataset_id for gate in gates}
    )
    experiments: dict[str, list[Experiment]] = {}
    for row in rows.order_by("-completed_at", "-pk") if gates else ():
        experiments.setdefault(row.target_id, []).append(row)
    tested = {key for own in experiments.values() for row in own for key in row.sub_agent_versions}
    agents = Agent.objects.with_ids(tested).exclude(active_version=None) if tested else Agent.objects.none()
    columns = agents.order_by().values_list("pk", "owner_id", "active_version_id")
    live_versions = {key: (owner, str(version)) for key, owner, version in columns}
    scorers = live_scorer_versions({gate.scorer for gate in gates}) if experiments else {}
    return SharedEvidence(experiments, live_versions, scorers)


def complete_experiments(agent_ids: Collection[str]) -> QuerySet[Experiment]:
    """Return the completed experiments of agents in which no item was left out.

    Experiments that a program outside drives do not count: it could invent results, or choose among attempts.
    """
    return Experiment.objects.filter(
        total_items=F("succeeded_count") + F("failed_count"),
        target_type="agent",
        target_id__in=agent_ids,
        status=Experiment.Status.COMPLETED,
        is_external=False,
        has_submitted_results=False,
    )


def uses_scorer(experiment: Experiment, scorer: str) -> bool:
    """Return whether an experiment uses a scorer, also if all its items failed, so that it has no figures."""
    if scorer in experiment.summary.get("scorers", {}):
        return True
    keys = experiment.scorer_keys if experiment.scorer_keys is not None else experiment.dataset_scorer_keys
    return not experiment.succeeded_count and scorer in (keys or [])


def check_gates(agent: Agent, version: AgentVersion, gates: Iterable[ReleaseGate]) -> list[GateState]:
    """Return whether the last experiments of a version meet gates, by few queries for any number of gates."""
    return check_all_gates([(agent, version, [*gates])])[agent.pk]


def check_all_gates(
    moves: Iterable[tuple[Agent, AgentVersion, Sequence[ReleaseGate]]],
) -> dict[str, list[GateState]]:
    """Return whether the last experiments of versions of different agents meet gates, by the ID of each agent.

    The number of queries is that of one agent.
    """
    checked = [CheckedVersion(*move) for move in moves]
    rows = find_evidence(checked)
    evidence = {move.agent.pk: Evidence(move, rows) for move in checked}
    return {
        agent.pk: [check_gate(agent, version, gate, evidence[agent.pk]) for gate in gates]
        for agent, version, gates in checked
    }


def check_gate(agent: Agent, version: AgentVersion, gate: ReleaseGate, evidence: Evidence) -> GateState:
    """Return whether the last experiment of a version meets a gate."""
    name = f"Version {version.version_number}"
    need = describe_need(gate, agent.owner_id)
    experiment = evidence.find(version.snapshot_hash, gate)
    if experiment is None:
        return GateState(gate, False, f"{name} needs {need}; {evidence.describe_missing(gate)}")
    if is_too_old(experiment, gate):
        days = pluralize(gate.max_age_days or 0, "day")
        return GateState(gate, False, f"{name} needs {need}; its last experiment is older than {days}.", experiment)
    if (failure := scoring_fault(experiment, gate)) is not None:
        return GateState(gate, False, f"{name} needs {need}; {failure}", experiment)
    # Without a score of its own, the message is about that, and not about the live version.
    has_score = figure_of(experiment, gate.scorer, "mean") is not None
    if has_score and (fault := evidence.live_fault(gate)) is not None:
        return GateState(gate, False, f"{name} needs {need}; {fault}", experiment, needs_live=True)
    if (value := evidence.statistic(experiment, gate)) is None:
        return GateState(gate, False, f"{name} needs {need}; its last experiment has no such score.", experiment)
    is_met = (gate.minimum is None or value >= gate.minimum) and (gate.maximum is None or value <= gate.maximum)
    message = f"{name} needs {need}; its last experiment scored {score_text(value, bars_of_gate(gate))}."
    return GateState(gate, is_met, message, experiment, value, evidence.changes_since(experiment, gate))


def scoring_fault(experiment: Experiment, gate: ReleaseGate) -> str | None:
    """Return why the scores of an experiment are too few for a gate, or None: items or scores failed, or are missing.

    An error of the scorer counts like a failed item. Otherwise the mean of the few answers that a broken scorer has
    scored would count for all.
    """
    errors = int(figure_of(experiment, gate.scorer, "errors") or 0)
    if experiment.failed_count + errors <= gate.max_failed:
        return partial_scoring_fault(experiment, gate.scorer)
    failed = f"{pluralize(experiment.failed_count, 'item')} of its last experiment failed"
    if not errors:
        return f"{failed}."
    more = f" and {failed}" if experiment.failed_count else ""
    return f"its scorer failed for {pluralize(errors, 'answer')} of its last experiment{more}."


def partial_scoring_fault(experiment: Experiment, scorer: str) -> str | None:
    """Return that a scorer has not seen all answers, because items name others, or None if it has."""
    seen = figure_of(experiment, scorer, "count")
    if seen is None:  # the figures of an earlier release
        return None
    # An answer that it could not score it has seen all the same.
    seen += figure_of(experiment, scorer, "unscored") or 0
    answers = pluralize(experiment.succeeded_count, "answer")
    message = f"its scorer has seen {seen:,.0f} of {answers} of its last experiment."
    return message if seen < experiment.succeeded_count else None


def is_too_old(experiment: Experiment, gate: ReleaseGate) -> bool:
    """Return whether an experiment is older than a gate allows."""
    ended = experiment.completed_at
    if not gate.max_age_days or ended is None:
        return False
    return ended < timezone.now() - timedelta(days=gate.max_age_days)


def bars_of_gate(gate: ReleaseGate) -> list[float]:
    return [bar for bar in (gate.minimum, gate.maximum) if bar is not None]


def describe_need(gate: ReleaseGate, owner_id: str) -> str:
    """Return what a gate asks of an agent of an owner: "0.80 on 'Exact match' over 'Support'"."""
    bars = [score_text(gate.minimum, [gate.minimum])] if gate.minimum is not None else []
    bars += [f"at most {score_text(gate.maximum, [gate.maximum])}"] if gate.maximum is not None else []
    statistic = "" if gate.statistic == Statistic.MEAN else f" ({gate.get_statistic_display().lower()})"
    return f"{' and '.join(bars)} on '{scorer_title(gate.scorer, owner_id)}'{statistic} over '{gate.dataset.name}'"


def figure_of(experiment: Experiment, scorer: str, name: str) -> float | None:
    figures = experiment.summary.get("scorers", {}).get(scorer) or {}
    value = figures.get(name)
    return round(float(value), SCORE_DIGITS) if value is not None else None
