"""Results of scorers, and what scorers see of an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from agentcms.db.column_values import ColumnValues
from agentcms.wire.json_types import JSONObject, JSONValue
from evals_app.experiments.spending import Spent, run_tree, spent_by_runs
from runs_app.models import AgentRun

MAX_RESULT_DEPTH = 5  # of sub-agents whose calls are counted
# Sums and squares of scores must fit a double.
MAX_SCORE = 1_000_000
ScoreValue = Annotated[float, Field(ge=-MAX_SCORE, le=MAX_SCORE)]
PASSED, FAILED, NOT_SCORABLE = "pass", "fail", "not scorable"


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


def calls_of_run(run: AgentRun, depth: int = 0) -> tuple[tuple[ToolUse, ...], int]:
    """Return the calls of a run in order, those of sub-agents after the call of their agent, and its steps."""
    begun, ends, steps = read_call_events(run)
    children = {child.parent_call_id: child for child in run.children.all()} if depth < MAX_RESULT_DEPTH else {}
    calls: list[ToolUse] = []
    for call_id, call in begun.items():
        end = ends.get(call_id, {})
        arguments = call.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        name, is_error = str(call.get("toolName", "")), bool(end.get("isError"))
        calls.append(ToolUse(name, arguments, end.get("result"), is_error, depth))
        if call_id in children:
            calls += calls_of_run(children[call_id], depth + 1)[0]
    return tuple(calls), steps


def read_call_events(run: AgentRun) -> tuple[dict[str, JSONObject], dict[str, JSONObject], int]:
    """Return the beginnings and the ends of the calls of a run, by the ID of the call, and the number of its steps."""
    types = ("tool-call", "tool-result", "tool-error", "step-start")
    events = run.events.filter(data__type__in=types).order_by("number").values_list("data", flat=True)
    begun: dict[str, JSONObject] = {}
    ends: dict[str, JSONObject] = {}
    steps = 0
    for event in events:
        payload = event.get("payload") or {}
        if event["type"] == "step-start":
            steps += 1
        elif event["type"] == "tool-call":
            begun[payload.get("toolCallId", "")] = payload
        else:
            ends[payload.get("toolCallId", "")] = {"isError": event["type"] == "tool-error", **payload}
    return begun, ends, steps
