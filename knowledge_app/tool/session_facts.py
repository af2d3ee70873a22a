"""The facts of a session: what the server knows of the caller of a run."""

from __future__ import annotations

from agentcms.wire.json_types import JSONMapping, JSONObject
from runs_app.engine.context import RunDeps
from runs_app.models import AgentRun


def facts_of(deps: RunDeps) -> JSONMapping:
    """Return the facts of a run. Nothing that a caller sent is among them."""
    stored = AgentRun.objects.filter(pk=deps.run_id).values_list("input__facts", flat=True).first()
    known: JSONObject = {"owner": deps.owner_id}
    if deps.user_id is not None:
        known["userId"] = f"u{deps.user_id}"
    # Those of the server last, so that no fact of a key replaces them.
    return {**(stored if isinstance(stored, dict) else {}), **known}
