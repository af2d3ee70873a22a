"""Trajectories: the calls that an agent should make, compared with those that it made."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentcms.wire.canonical import canonical
from agentcms.wire.json_types import JSONObject, JSONValue
from evals_app.scorers.expectations import ARGUMENT_NAMES, RESULT_NAMES
from evals_app.scorers.kinds.trajectory_limits import limit_faults, limits_of
from evals_app.scorers.results import FAILED, PASSED, Answer, NotScorable, ScoreResult, ToolUse

TRAJECTORY_MODES = ("strict", "relaxed", "unordered", "subset", "superset")
# The mode for each `ordering` of an expected trajectory, as the published client names it. All but the first allow
# more calls than the expected ones.
MODE_BY_ORDERING = {"strict": "strict", "relaxed": "relaxed", "unordered": "superset"}
ANY = ""  # in place of arguments or a result that are not looked at
CALL_TYPE = "tool_call"  # of a step
# Of expected steps and calls. A comparison takes about a second, in which nothing else runs.
MAX_STEP_PAIRS = 1_000_000


class ExpectedStep(NamedTuple):
    """A call that is expected. `below` are the calls of its sub-agent with their mode, or None for any."""

    name: str
    arguments: str = ANY
    result: str = ANY
    success: bool | None = None
    below: tuple[str, tuple[ExpectedStep, ...]] | None = None


class MadeStep(NamedTuple):
    """A call that was made. `below` are the calls of its sub-agent, if they are looked at."""

    name: str
    arguments: str
    result: str
    success: bool
    below: tuple[ToolUse, ...] = ()


class StepDifference(NamedTuple):
    """The expected steps without a call, and the calls without an expected step, by name."""

    missing: list[str]
    unexpected: list[str]


# --- Expected steps


def expected_steps(value: JSONValue) -> list[JSONValue]:
    """Return the expected steps of an item or a configuration: a list, or an object with `steps`."""
    steps = value.get("steps") if isinstance(value, dict) else value
    if not isinstance(steps, list):
        raise NotScorable("There are no expected steps.")
    return steps


def comparison_mode(config: JSONObject, expectation: JSONValue) -> str:
    """Return how calls are compared: as the scorer says, else as the expected trajectory does, else strictly."""
    ordering = expectation.get("ordering") if isinstance(expectation, dict) else None
    return str(config.get("mode") or MODE_BY_ORDERING.get(str(ordering), "strict"))


def parse_steps(steps: Sequence[JSONValue], with_values: bool) -> Iterator[ExpectedStep]:
    """Yield expected steps. Instead of one that is not a call, such as the run of a sub-agent, yield those in it."""
    for step in steps:
        below = step.get("children") if isinstance(step, dict) else None
        if isinstance(step, dict) and step.get("stepType", CALL_TYPE) != CALL_TYPE:
            yield from parse_steps(expected_steps(below or []), with_values)
        else:
            yield parse_step(step, with_values)


def parse_step(step: JSONValue, with_values: bool) -> ExpectedStep:
    """Return an expected step. What it does not name may be anything."""
    if not isinstance(step, dict):
        return ExpectedStep(str(step))
    name, below = str(step.get("toolName") or step.get("name") or ""), step.get("children")
    arguments, result = (value_under(step, names) if with_values else ANY for names in (ARGUMENT_NAMES, RESULT_NAMES))
    success = step.get("success") if with_values and isinstance(step.get("success"), bool) else None
    if below is None:
        return ExpectedStep(name, arguments, result, success)
    children = tuple(parse_steps(expected_steps(below), with_values))
    return ExpectedStep(name, arguments, result, success, (comparison_mode({}, below), children))


def count_steps(steps: Sequence[ExpectedStep]) -> int:
    """Return the number of steps, with those of sub-agents."""
    return sum(1 + (count_steps(step.below[1]) if step.below else 0) for step in steps)


def reject_many_pairs(expected: int, made: int) -> None:
    """Raise NotScorable for more steps and calls than can be compared while other answers wait."""
    if expected * made > MAX_STEP_PAIRS:
        raise NotScorable(f"{expected:,} expected steps and {made:,} calls are too many to compare.")


def value_under(step: JSONObject, names: Sequence[str]) -> str:
    """Return the value that a step has under one of these names, as comparable text, or ANY."""
    value = next((step[name] for name in names if step.get(name) is not None), None)
    return ANY if value is None else canonical(value)


# --- Calls that were made


def made_steps(expected: Sequence[ExpectedStep], calls: Sequence[ToolUse]) -> list[MadeStep]:
    """Return the calls that are compared with expected steps.

    They are all calls, those of a sub-agent after the call of their agent. If an expected step says what is below it,
    they are those of the agent itself, each with the calls below it.
    """
    has_results = any(step.result != ANY for step in expected)
    if all(step.below is None for step in expected):
        return [made_step(call, has_results) for call in calls]
    tops = [number for number, call in enumerate(calls) if call.depth == calls[0].depth]
    bounds = pairwise([*tops, len(calls)])
    return [made_step(calls[top], has_results, calls[top + 1 : end]) for top, end in bounds]


def made_step(call: ToolUse, has_result: bool, below: Sequence[ToolUse] = ()) -> MadeStep:
    result = canonical(call.result) if has_result else ANY
    return MadeStep(call.name, canonical(call.arguments), result, not call.is_error, tuple(below))


# --- Comparison


def score_trajectory(config: JSONObject, answer: Answer) -> ScoreResult:
    """Score the calls of an answer. Raise NotScorable without expected steps, unless there are limits."""
    with_values = config.get("arguments", "ignore") == "compare"
    names = [call.name for call in answer.calls]
    expectation = config.get("expected", answer.expected_trajectory)
    limits = limits_of(config, expectation)
    broken_limits = limit_faults(limits, answer)
    difference: JSONObject = {}
    matching_share = 1.0
    if not limits or has_steps(expectation):
        expected = [*parse_steps(expected_steps(expectation), with_values)]
        mode = comparison_mode(config, expectation)
        reject_many_pairs(count_steps(expected), len(names))
        made = made_steps(expected, answer.calls)
        matches = match_steps(expected, made)
        matching_share = compare_steps(mode, expected, made, matches)
        difference = difference_of(expected, made, matches)._asdict()
    faults = [*broken_limits, f"The calls do not match ({mode})."] if matching_share < 1 else broken_limits
    # A broken limit fails the whole answer. Steps that do not match only lower the score.
    score = 0.0 if broken_limits else matching_share
    return ScoreResult(score, " ".join(faults), {"calls": names, **difference}, FAILED if faults else PASSED)


def has_steps(expectation: JSONValue) -> bool:
    return expectation is not None and not (isinstance(expectation, dict) and expectation.get("steps") is None)


def compare_steps(
    mode: str, expected: Sequence[ExpectedStep], made: Sequence[MadeStep], matches: Mapping[int, int] | None = None
) -> float:
    """Return the share of steps that match. `matches` are those of `match_steps`, if they are known.

    `strict` needs the same calls in the same order, `relaxed` every expected call in this order, `unordered` the same
    calls in any order, `subset` no call that is not expected, and `superset` every expected call.
    """
    if mode == "strict":
        equal = sum(is_match(first, second) for first, second in zip(expected, made, strict=False))
        return share(equal, max(len(expected), len(made)))
    if mode == "relaxed":
        return share(longest_common_part(expected, made), len(expected))
    matching = len(match_steps(expected, made) if matches is None else matches)
    if mode == "unordered":
        return share(matching, max(len(expected), len(made)))
    return share(matching, len(made) if mode == "subset" else len(expected))


def difference_of(
    expected: Sequence[ExpectedStep], made: Sequence[MadeStep], matches: Mapping[int, int]
) -> StepDifference:
    """Return which steps have no match, in whatever order they were made."""
    taken = {*matches.values()}
    missing = sorted(step.name for number, step in enumerate(expected) if number not in matches)
    return StepDifference(missing, sorted(call.name for number, call in enumerate(made) if number not in taken))


def is_match(expected: ExpectedStep, call: MadeStep) -> bool:
    if expected.name != call.name or expected.arguments not in (ANY, call.arguments):
        return False
    if expected.result not in (ANY, call.result) or expected.success not in (None, call.success):
        return False
    if expected.below is None:
        return True
    mode, steps = expected.below
    return compare_steps(mode, steps, made_steps(steps, call.below)) == 1


def longest_common_part(expected: Sequence[ExpectedStep], made: Sequence[MadeStep]) -> int:
    """Return the number of expected steps that were made in their order, with other calls between them."""
    lengths = [0] * (len(made) + 1)
    for step in expected:
        before = lengths[:]
        for number, call in enumerate(made, 1):
            longer = before[number - 1] + 1 if is_match(step, call) else 0
            lengths[number] = max(longer, before[number], lengths[number - 1])
    return lengths[-1]


def match_steps(expected: Sequence[ExpectedStep], made: Sequence[MadeStep]) -> dict[int, int]:
    """Return a call for each of as many expected steps as possible, both by number."""
    calls = [[number for number, call in enumerate(made) if is_match(step, call)] for step in expected]
    call_of: dict[int, int] = {}
    step_of: dict[int, int] = {}
    for number in range(len(expected)):
        add_match(number, calls, call_of, step_of)
    return call_of


def add_match(first: int, calls: list[list[int]], call_of: dict[int, int], step_of: dict[int, int]) -> None:
    """Give a step a call that it matches. The step that has it already takes another one, if there is one."""
    # A search for an augmenting path of the matching. It is no recursion: the path may be as long as there are steps.
    found_by: dict[int, int] = {}  # the step from which the search reached a call
    queue = deque([first])
    while queue:
        step = queue.popleft()
        for call in calls[step]:
            if call in found_by:
                continue
            found_by[call] = step
            if call in step_of:
                queue.append(step_of[call])
                continue
            following: int | None = call
            while following is not None:
                step = found_by[following]
                step_of[following] = step
                call_of[step], following = following, call_of.get(step)
            return
    for call in found_by:
        calls[step_of[call]] = []  # no later search finds a way over these either


def share(count: int, total: int) -> float:
    return count / total if total else 1.0
