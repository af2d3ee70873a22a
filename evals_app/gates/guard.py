"""The guard that keeps a version that misses a gate from going live."""

from __future__ import annotations

from agents_app.models import Agent
from evals_app.gates.checking import check_gate, gates_for
from evals_app.models import ReleaseGate
from versions_app.models import Activation, AgentVersion


def refuse_unmet_gates(row: Agent, version: AgentVersion) -> str:
    """Return why a version may not go live, or a blank text. A way back to what was live before is always free."""
    gates = list(gates_for(row).filter(mode=ReleaseGate.Mode.ENFORCE).select_related("dataset"))
    if not gates or was_live(row, version):
        return ""
    states = [check_gate(row, version, gate) for gate in gates]
    return " ".join(state.message for state in states if not state.is_met)


def was_live(row: Agent, version: AgentVersion) -> bool:
    """Return whether the agent was live with this configuration before."""
    moves = Activation.objects.filter(agent=row).values("to_version_id")
    return AgentVersion.objects.filter(agent=row, pk__in=moves, snapshot_hash=version.snapshot_hash).exists()
