"""The decision whether a run is durable: by the call, else by the agent, else by RUN_DURABLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.conf import settings

from agentcms.wire.json_types import JSONMapping, JSONObject
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent


class Durability(NamedTuple):
    """The decision about a run, and its options, which may include a limit of steps."""

    is_durable: bool
    options: JSONObject


def find_durability(agent: ResolvedAgent, options: JSONMapping) -> Durability:
    """Return whether a run of an agent with these options of a call is durable.

    `durable` is true, false, or an object with `maxSteps`, which limits the steps unless the call has its own limit.
    """
    remaining = {name: value for name, value in options.items() if name != "durable"}
    value = options.get("durable")
    if value is None:
        value = agent.configuration.get("durable")
    if value is None:
        value = settings.RUN_DURABLE
    if isinstance(value, Mapping) and "maxSteps" in value:
        remaining.setdefault("maxSteps", value["maxSteps"])
    # Nobody could continue a run of text that is stored nowhere else.
    return Durability(value is not False and agent.target != AgentRun.Target.UNSAVED, remaining)
