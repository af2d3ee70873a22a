"""Trajectories: the calls that an agent should make, compared with those that it made."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentcms.wire.canonical import canonical
from evals_app.scorers.results import FAILED, PASSED, Answer, NotScorable, ScoreResult, ToolUse

MODES = ("strict", "relaxed", "unordered", "subset", "superset")
# The mode for each `ordering` of an expected trajectory, as the published client names it. All but the first allow
# more calls than the expected ones.
MODE_BY_ORDERING = {"strict": "strict", "relaxed": "relaxed", "unordered": "superset"}
ANY = ""  # in place of arguments: those of a call are not looked at
Step = tuple[str, str]  # the name of a tool and its arguments, or ANY
ARGUMENT_NAMES = ("args", "arguments", "toolArgs")  # the last one is that of traces and of the published client


def expected_steps(value: Any) -> list[Any]:
    """Return the expected steps of an item or a configuration: a list, or an object with `steps`."""
    steps = value.get("steps") if isinstance(value, dict) else value
    if not isinstance(steps, list):
        raise NotScorable("There are no expected steps.")
    return steps


def mode_of(config: dict[str, Any], expectation: Any) -> str:
    """Return how calls are compared: as the scorer says, else as the expected trajectory does, else strictly."""
    ordering = expectation.get("ordering") if isinstance(expectation, dict) else None
    return str(config.get("mode") or MODE_BY_ORDERING.get(str(ordering), "strict"))


def step_of_expected(step: Any, with_arguments: bool) -> Step:
    """Return an expected step. One that names no arguments allows any."""
    if not isinstance(step, dict):
        return str(step), ANY
    name = step.get("toolName") or step.get("name") or ""
    arguments = next((step[key] for key in ARGUMENT_NAMES if step.get(key) is not None), None)
    return str(name), canonical(arguments) if with_arguments and arguments is not None else ANY


def step_of_call(call: ToolUse, with_arguments: bool) -> Step:
    return call.name, canonical(call.arguments) if with_arguments else ANY


def score_trajectory(config: dict[str, Any], answer: Answer) -> ScoreResult:
    """Score the calls of an answer. Raise NotScorable without expected steps, unless only limits are set."""
    with_arguments = config.get("arguments", "ignore") == "compare"
    made = [step_of_call(call, with_arguments) for call in answer.calls]
    faults = limit_faults(config, [name for name, _ in made])
    expectation = config.get("expected", answer.expected_trajectory)
    difference: dict[str, Any] = {}
    part = 1.0
    if expectation is not None or (config.get("maxSteps") is None and not config.get("forbiddenTools")):
        expected = [step_of_expected(step, with_arguments) for step in expected_steps(expectation)]
        mode = mode_of(config, expectation)
        part, difference = compare_steps(mode, expected, made)
        if part < 1:
            faults.append(f"The calls do not match ({mode}).")
    score = 0.0 if len(faults) > (part < 1) else part
    details = {"calls": [name for name, _ in made], **difference}
    return ScoreResult(score, " ".join(faults), details, FAILED if faults else PASSED)


def limit_faults(config: dict[str, Any], names: list[str]) -> list[str]:
    forbidden = sorted({*names} & {*config.get("forbiddenTools", [])})
    faults = [f"A forbidden tool was called: {name}." for name in forbidden]
    if (most := config.get("maxSteps")) is not None and len(names) > most:
        faults.append(f"{len(names)} calls, at most {most} are allowed.")
    return faults


def compare_steps(mode: str, expected: list[Step], made: list[Step]) -> tuple[float, dict[str, Any]]:
    """Return the share of steps that match, and those that are missing or unexpected.

    `strict` needs the same calls in the same order, `relaxed` every expected call in this order, `unordered` the same
    calls in any order, `subset` no call that is not expected, and `superset` every expected call.
    """
    missing, unexpected = unmatched_steps(expected, made)
    matching = len(expected) - missing.total()
    difference = {"missing": names_of(missing), "unexpected": names_of(unexpected)}
    if mode == "strict":
        equal = sum(is_match(first, second) for first, second in zip(expected, made, strict=False))
        return share(equal, max(len(expected), len(made))), difference
    if mode == "relaxed":
        return share(longest_common_part(expected, made), len(expected)), difference
    if mode == "unordered":
        return share(matching, max(len(expected), len(made))), difference
    if mode == "subset":
        return share(matching, len(made)), difference
    return share(matching, len(expected)), difference


def longest_common_part(expected: list[Step], made: list[Step]) -> int:
    """Return the number of expected steps that were made in their order, with other calls between them."""
    lengths = [0] * (len(made) + 1)
    for step in expected:
        before = lengths[:]
        for number, call in enumerate(made, 1):
            longer = before[number - 1] + 1 if is_match(step, call) else 0
            lengths[number] = max(longer, before[number], lengths[number - 1])
    return lengths[-1]


def is_match(expected: Step, call: Step) -> bool:
    return expected == call or expected == (call[0], ANY)


def unmatched_steps(expected: list[Step], made: list[Step]) -> tuple[Counter[Step], Counter[Step]]:
    """Return the expected steps without a call, and the calls without an expected step."""
    missing, unexpected = Counter(expected) - Counter(made), Counter(made) - Counter(expected)
    # Steps with arguments have their calls now. Those that allow any take what is left.
    for call, count in [*unexpected.items()]:
        taken = min(count, missing[call[0], ANY])
        unexpected[call] -= taken
        missing[call[0], ANY] -= taken
    return +missing, +unexpected


def share(count: int, total: int) -> float:
    return count / total if total else 1.0


def names_of(steps: Counter[Step]) -> list[str]:
    return sorted(name for name, _ in steps.elements())
