"""The start of a sub-agent's run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from agentcms.wire.json_types import JSONMapping
from runs_app.engine import leases
from runs_app.engine.engine import get_engine
from runs_app.engine.start.input import build_input, fill_input
from runs_app.engine.start.memory import find_child_memory
from runs_app.engine.start.rows import save_run
from runs_app.models import AgentRun
from runs_app.models.run import MAX_PARENT_CALL_ID
from runs_app.requests.facts import context_input, with_variants
from runs_app.resolution import ResolvedAgent


def start_child(
    agent: ResolvedAgent, *, parent: AgentRun, prompt: str, call_id: str, options: JSONMapping
) -> AgentRun:
    """Create a child run. The process that executes the parent executes it."""
    columns = leases.start_columns(get_engine().holder)
    return save_child(agent, parent, prompt, options, parent_call_id=call_id[:MAX_PARENT_CALL_ID], **columns)


def start_durable_child(
    agent: ResolvedAgent,
    child_id: UUID,
    holder: str,
    *,
    parent: AgentRun,
    prompt: str,
    call_id: str,
    options: JSONMapping,
) -> AgentRun:
    """Create a child run of a durable run, which belongs to the process of its parent."""
    columns = {"pk": child_id, "parent_call_id": call_id[:MAX_PARENT_CALL_ID], **leases.claim_columns(holder)}
    return save_child(agent, parent, prompt, options, **columns)


def save_child(agent: ResolvedAgent, parent: AgentRun, prompt: str, options: JSONMapping, **columns: Any) -> AgentRun:
    agent = with_variants(agent, parent.facts, parent.request_context)
    narrowing = parent.input.get("memory") or {}
    run_input = build_input(prompt, options, [], parent.request_context, narrowing)
    run_input |= context_input(agent, parent.facts)
    run_input, warnings = fill_input(agent, run_input, [])
    if "experiment" in parent.input:
        run_input["experiment"] = parent.input["experiment"]
    tree = {"parent": parent, "root_id": parent.root_id or parent.pk, "experiment_id": parent.experiment_id}
    # The user of the parent comes from its row and has no API key, which would say whose end users ask.
    tree["realm_owner"] = parent.realm_owner
    columns |= {**tree, **find_child_memory(agent, parent)}
    return save_run(agent, parent.requested_by, run_input, parent.owner_id, warnings=warnings, **columns)
