"""Conditions that end a run after a step. Code registers them, and names one where it starts a run.

@stop_condition("found")
def found(steps: Sequence[FinishedStep]) -> bool:
    return any(call.tool == "search" and call.result for call in steps[-1].calls)

start_run(agent, user=user, messages="Find it", stop_when="found")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.registry.functions import function_registrar

STOP_WHEN = "stopWhen"  # in the options of a run: the name of its condition


@dataclass(frozen=True)
class FinishedCall:
    """A tool call with its result."""

    tool: str
    arguments: JSONMapping
    result: JSONValue


@dataclass(frozen=True)
class FinishedStep:
    """An answer of the model with the results of the tools that it called."""

    text: str
    calls: tuple[FinishedCall, ...]
    total_tokens: int


# Returns whether a run ends after these steps, or an awaitable of it. A process that continues the run asks it again
# about the same steps, so it may depend on nothing else.
StopCondition = Callable[[Sequence[FinishedStep]], Any]
Registered = TypeVar("Registered", bound=StopCondition)

_conditions: dict[str, StopCondition] = {}


def stop_condition(name: str) -> Callable[[Registered], Registered]:
    """Register a condition under a name. Raise ImproperlyConfigured if another one has it."""
    return function_registrar(_conditions, name, "stop condition")


def find_stop_condition(name: str) -> StopCondition | None:
    return _conditions.get(name)
