"""Limits of trajectories, such as the most calls and the forbidden tools. They apply beside the expected steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from agentcms.wire.canonical import canonical
from agentcms.wire.json_types import JSONObject, JSONValue
from evals_app.scorers.results import Answer, NotScorable, ToolUse


class TrajectoryLimits(NamedTuple):
    """The most calls, tokens, milliseconds and retries, or None; and the calls that must not be made."""

    most: int | None = None
    tools: frozenset[str] = frozenset()
    sequences: tuple[tuple[str, ...], ...] = ()  # of tools that must not be called one after another
    tokens: int | None = None
    milliseconds: float | None = None
    retries: int | None = None
    no_redundant: bool = False
    no_repeats: bool = False

    def __bool__(self) -> bool:
        return self != TrajectoryLimits()


def limits_of(config: JSONObject, expectation: JSONValue) -> TrajectoryLimits:
    """Return the limits of a scorer combined with those of an expected trajectory: both apply."""
    own = expectation if isinstance(expectation, dict) else {}
    most = [value for value in (config.get("maxSteps"), own.get("maxSteps")) if isinstance(value, int)]
    tools = {*(config.get("forbiddenTools") or ()), *names_in(own.get("blacklistedTools"))}
    sequences = own.get("blacklistedSequences")
    parts = map(names_in, sequences if isinstance(sequences, list) else ())
    return TrajectoryLimits(
        min(most, default=None),
        frozenset(tools),
        tuple(part for part in parts if part),
        tokens=number_in(own.get("maxTotalTokens")),
        milliseconds=number_in(own.get("maxTotalDurationMs")),
        retries=number_in(own.get("maxRetriesPerTool")),
        no_redundant=own.get("noRedundantCalls") is True,
        no_repeats=own.get("allowRepeatedSteps") is False,
    )


def names_in(value: JSONValue) -> tuple[str, ...]:
    """Return the texts of a list; none for anything else, which items of earlier releases may have."""
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()


def number_in(value: JSONValue) -> JSONValue:
    """Return a number, or None for anything else."""
    # Python takes True for the number 1.
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def limit_faults(limits: TrajectoryLimits, answer: Answer) -> list[str]:
    """Return which limits an answer breaks. Raise NotScorable if a limit needs a figure that is not known."""
    names = [call.name for call in answer.calls]
    milliseconds = None if answer.seconds is None else answer.seconds * 1000
    return [
        *forbidden_calls(limits, names),
        *excess("calls", len(names), limits.most),
        *repeated_calls(limits, answer.calls),
        *excess("tokens", answer.tokens, limits.tokens),
        *excess("milliseconds", milliseconds, limits.milliseconds),
    ]


def forbidden_calls(limits: TrajectoryLimits, names: list[str]) -> list[str]:
    faults = [f"A forbidden tool was called: {name}." for name in sorted({*names} & limits.tools)]
    for sequence in limits.sequences:
        starts = range(len(names) - len(sequence) + 1)
        if any(tuple(names[start : start + len(sequence)]) == sequence for start in starts):
            faults.append(f"Forbidden calls one after another: {', '.join(sequence)}.")
    return faults


def repeated_calls(limits: TrajectoryLimits, calls: Sequence[ToolUse]) -> list[str]:
    repeated = [name for name, count in Counter(call.name for call in calls).items() if count > 1]
    checks = [
        ("Called more than once", repeated if limits.no_repeats else []),
        ("Called again with the same arguments", redundant_calls(calls) if limits.no_redundant else []),
        ("Retried too often", [] if limits.retries is None else tools_retried_more(calls, limits.retries)),
    ]
    return [f"{fault}: {', '.join(sorted(names))}." for fault, names in checks if names]


def excess(unit: str, value: float | None, most: float | None) -> list[str]:
    """Return that a value is above its limit, or nothing. Raise NotScorable if the value is not known."""
    if most is None:
        return []
    if value is None:
        raise NotScorable(f"The {unit} of this answer are not known.")
    noun = unit.removesuffix("s") if round(value) == 1 else unit
    return [f"{value:.0f} {noun}, at most {most:g} are allowed."] if value > most else []


def redundant_calls(calls: Sequence[ToolUse]) -> list[str]:
    """Return the tools that were called twice in a row with the same arguments."""
    same = {
        after.name
        for before, after in pairwise(calls)
        if before.name == after.name and canonical(before.arguments) == canonical(after.arguments)
    }
    return [*same]


def tools_retried_more(calls: Sequence[ToolUse], most: float) -> list[str]:
    """Return the tools that were called in a row, after failures, more often than this."""
    retried = set()
    for name, uses in groupby(calls, lambda call: call.name):
        row = [*uses]  # after its last call, nothing was tried again
        if sum(call.is_error for call in row[:-1]) > most:
            retried.add(name)
    return [*retried]
