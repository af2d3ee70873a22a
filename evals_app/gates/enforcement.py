"""The guard that keeps a version that misses a gate from going live."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Model, QuerySet

from agentcms.db.compiled_query import compiled_query
from agents_app.models import Agent
from evals_app.gates.checking import GateState, check_gates, gates_by_ids, gates_for
from evals_app.models import Dataset, ReleaseGate
from versions_app.models import Activation, AgentVersion
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


def warn_of_gates(row: Agent, version: AgentVersion) -> str:
    """Return which gates that only warn a version misses, and what has changed since its experiments."""
    return warning_of(check_gates(row, version, gates_for(row)))


def warning_of(states: Sequence[GateState]) -> str:
    warnings = dict.fromkeys(state.warning for state in states if state.warning)
    return " ".join([*unmet_messages(states, ReleaseGate.Mode.WARN), *warnings])


def unmet_messages(states: Sequence[GateState], mode: str) -> list[str]:
    return [state.message for state in states if not state.is_met and state.gate.mode == mode]


def was_live(row: Agent, version: AgentVersion) -> bool:
    """Return whether the agent was live with this configuration before."""
    moves = Activation.objects.filter(agent=row).values("to_version_id")
    # By its hash: restoring an old version makes a new one with the same content.
    return AgentVersion.objects.filter(agent=row, pk__in=moves, snapshot_hash=version.snapshot_hash).exists()


def reject_gate_without_dataset(row: Model) -> None:
    """Raise RestoreRefused for a gate of a deleted agent whose dataset was deleted meanwhile.

    Without its gates, an agent could go live untested after a detour through the trash.
    """
    if isinstance(row, ReleaseGate) and not Dataset.objects.filter(pk=row.dataset_id).exists():
        raise RestoreRefused(
            f"A release gate of this agent needs the dataset '{row.dataset_id}', which was deleted. "
            "Create a dataset with this ID first."
        )
