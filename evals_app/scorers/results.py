"""Results of scorers, and what scorers see of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from agentcms.db.column_values import ColumnValues
from agentcms.wire.json_types import JSONObject, JSONValue
from evals_app.experiments.spending import Spent, run_tree, spent_by_runs
from evals_app.run_trees import RunTreeRows, read_run_tree
from runs_app.models import AgentRun
from runs_app.scoring import MAX_SCORE

ENDS = ("tool-result", "tool-error")
CALL_TYPES = ("tool-call", *ENDS, "step-start")  # of the events that calls and steps are read from
ScoreValue = Annotated[float, Field(ge=-MAX_SCORE, le=MAX_SCORE)]
PASSED, FAILED = "pass", "fail"
NO_TRUTH_MESSAGE = "There is no ground truth to compare with."


class NotScorable(Exception):
    """An answer that a scorer cannot score, such as one without a ground truth. The message says why."""


class ScorerError(Exception):
    """A scorer that failed. The message is for users."""


@dataclass(frozen=True)
class ScoreResult:
    """A score with its reason, or an error. An answer that cannot be scored has neither."""

    score: float | None = None
    reason: str = ""
    details: JSONObject = field(default_factory=dict)
    label: str = ""
    error: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    cost: float | None = None
    version_number: int | None = None

    @property
    def columns(self) -> ColumnValues:
        """The columns of the row of a score."""
        fields = ("score", "reason", "details", "label", "error", "usage", "cost")
        return {**{name: getattr(self, name) for name in fields}, "version": self.version_number}


@dataclass(frozen=True)
class ToolUse:
    """A call of a tool in a run."""

    name: str
    arguments: JSONObject
    result: JSONValue = None
    is_error: bool = False
    depth: int = 0  # of the sub-agent that made it; 0 for the agent itself


@dataclass(frozen=True)
class Answer:
    """An answer with everything that a scorer may look at."""

    input: JSONValue
    output: JSONValue
    ground_truth: JSONValue = None
    expected_trajectory: JSONValue = None
    calls: tuple[ToolUse, ...] = ()
    steps: int | None = None
    seconds: float | None = None
    cost: float | None = None
    tokens: int | None = None
    instructions: str = ""
    run: AgentRun | None = None


def answer_of_run(run: AgentRun, spent: Spent | None = None, **fields: Any) -> Answer:
    """Return the answer of a stored run. `fields` replace what the run says.

    `spent` is what the run and its sub-agents have spent, if it is known. Otherwise it is read.
    """
    spent = spent_by_runs(run_tree(run)) if spent is None else spent
    texts = [part["text"] for part in run.input["messages"][-1]["content"] if part["type"] == "text"]
    calls, steps = calls_of_run(run)
    values: dict[str, Any] = {
        "input": "\n".join(texts),
        "output": run.output,
        "calls": calls,
        "steps": steps,
        "seconds": run.duration.total_seconds() if run.duration else None,
        "cost": float(spent.cost) if spent.cost is not None else None,
        "tokens": spent.tokens,
        "instructions": run.filled_instructions,
        "run": run,
    }
    return Answer(**{**values, **fields})


def calls_of_run(run: AgentRun) -> tuple[tuple[ToolUse, ...], int]:
    """Return the calls of a run in order, those of sub-agents after the call of their agent, and its steps."""
    tree = read_run_tree(run.pk, CALL_TYPES)
    steps = sum(event.data["type"] == "step-start" for event in tree.events[run.pk])
    return tuple(calls_in_tree(tree, run.pk, 0)), steps


def calls_in_tree(tree: RunTreeRows, run_id: UUID, depth: int) -> Iterator[ToolUse]:
    """Yield the calls of a run of a tree, those of sub-agents after the call of their agent."""
    begun: dict[str, JSONObject] = {}
    ends: dict[str, JSONObject] = {}
    for event in (row.data for row in tree.events[run_id]):
        payload = event.get("payload") or {}
        if event["type"] == "tool-call":
            begun[payload.get("toolCallId", "")] = payload
        elif event["type"] in ENDS:
            ends[payload.get("toolCallId", "")] = {"isError": event["type"] == "tool-error", **payload}
    for call_id, call in begun.items():
        end = ends.get(call_id, {})
        arguments = call.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        name, is_error = str(call.get("toolName", "")), bool(end.get("isError"))
        yield ToolUse(name, arguments, end.get("result"), is_error, depth)
        if (child := tree.children[run_id].get(call_id)) is not None:
            yield from calls_in_tree(tree, child.pk, depth + 1)
