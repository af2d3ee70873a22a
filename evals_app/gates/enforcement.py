"""The guard that keeps a version that misses a gate from going live."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Model, QuerySet

from agentcms.db.statements.compiled_query import compiled_query
from agents_app.models import Agent
from evals_app.gates.checking import GateState, check_all_gates, check_gates, gates_by_ids, gates_of_agents
from evals_app.models import Dataset, ReleaseGate
from versions_app.models import Activation, AgentVersion
from versions_app.publishing import PublishNotes
from versions_app.trash import RestoreRefused


@compiled_query
def applying_gates(*, agent_id: str, owner_id: str) -> QuerySet[ReleaseGate, ReleaseGate]:
    """Return the gates of an agent and of its team. Compiled, because every save that publishes asks for them."""
    return gates_by_ids(agent_id, owner_id)


def refuse_unmet_gates(row: Agent, version: AgentVersion) -> str:
    """Return why a version may not go live, or a blank text. A way back to what was live before is always free.

    Sets what the gates say of a version that may, for the response.
    """
    gates = applying_gates(agent_id=row.pk, owner_id=row.owner_id)
    if not gates or was_live(row, version):
        return ""
    states = check_gates(row, version, gates)
    row.gate_warning = warning_of(states)
    return " ".join(unmet_messages(states, ReleaseGate.Mode.ENFORCE))


def notes_of_gates(moves: Sequence[tuple[Agent, AgentVersion]]) -> list[PublishNotes]:
    """Return which gates refuse the version of each agent, which only warn, and what changed since its experiments."""
    gates = gates_of_agents([row for row, _ in moves])
    # Most agents have no gate, and need no further query.
    gated = [(row, version) for row, version in moves if gates[row.pk]]
    earlier = live_before(gated)
    states = check_all_gates([(row, version, gates[row.pk]) for row, version in gated])
    notes = {row.pk: notes_of(row, version, states[row.pk], earlier) for row, version in gated}
    return [notes.get(row.pk, PublishNotes()) for row, _ in moves]


def notes_of(
    row: Agent, version: AgentVersion, states: Sequence[GateState], earlier: Collection[tuple[str, str]]
) -> PublishNotes:
    is_free = (row.pk, version.snapshot_hash) in earlier
    refusal = "" if is_free else " ".join(unmet_messages(states, ReleaseGate.Mode.ENFORCE))
    return PublishNotes(refusal, warning_of(states))


def warning_of(states: Sequence[GateState]) -> str:
    # Each once: several gates may look at the same experiment.
    warnings = dict.fromkeys(state.warning for state in states if state.warning)
    return " ".join([*unmet_messages(states, ReleaseGate.Mode.WARN), *warnings])


def unmet_messages(states: Sequence[GateState], mode: str) -> list[str]:
    return [state.message for state in states if not state.is_met and state.gate.mode == mode]


def was_live(row: Agent, version: AgentVersion) -> bool:
    """Return whether the agent was live with this configuration before."""
    return bool(live_before([(row, version)]))


def live_before(moves: Sequence[tuple[Agent, AgentVersion]]) -> set[tuple[str, str]]:
    """Return the agents and configurations, of those of the versions, with which the agents were live before."""
    if not moves:
        return set()
    agents, hashes = {row.pk for row, _ in moves}, {version.snapshot_hash for _, version in moves}
    activations = Activation.objects.filter(agent__in=agents).values("to_version_id")
    # By its hash: restoring an old version makes a new one with the same content.
    versions = AgentVersion.objects.filter(agent__in=agents, pk__in=activations, snapshot_hash__in=hashes)
    return {*versions.values_list("agent_id", "snapshot_hash")}


def reject_gate_without_dataset(row: Model) -> None:
    """Raise RestoreRefused for a gate of a deleted agent whose dataset was deleted meanwhile.

    Without its gates, an agent could go live untested after a detour through the trash.
    """
    if isinstance(row, ReleaseGate) and not Dataset.objects.filter(pk=row.dataset_id).exists():
        raise RestoreRefused(
            f"A release gate of this agent needs the dataset '{row.dataset_id}', which was deleted. "
            "Create a dataset with this ID first."
        )
