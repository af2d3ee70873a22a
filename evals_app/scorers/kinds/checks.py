"""Checks: scorers that compare an answer with fixed rules, without a model."""

from __future__ import annotations

import json
from collections.abc import Callable

from rapidfuzz import fuzz

from agentcms.plural import pluralize
from agentcms.wire.canonical import comparable_texts, json_equal, text_or_json
from agentcms.wire.json_schema import SchemaUnusable, SchemaValidator
from agentcms.wire.json_types import JSONObject
from agentcms.wire.patterns import compile_pattern
from evals_app.scorers.results import FAILED, NO_TRUTH_MESSAGE, PASSED, Answer, NotScorable, ScorerError, ScoreResult

# Characters of one text times those of the other: a comparison takes 0.1 s, in which nothing else runs.
MAX_CHARACTER_PAIRS = 4_000_000_000

Config = JSONObject
Check = Callable[[Config, Answer], tuple[float, str]]


def compared_texts(config: Config, answer: Answer) -> tuple[str, str]:
    """Return the answer and the text of the configuration, or else the ground truth. Raise NotScorable without it."""
    value = config.get("value", answer.ground_truth)
    if value is None:
        raise NotScorable(NO_TRUTH_MESSAGE)
    return comparable_texts(answer.output, value)


def normalized(text: str, config: Config) -> str:
    return text if config.get("caseSensitive") else text.casefold()


def includes(config: Config, answer: Answer) -> tuple[float, str]:
    if words := config.get("values"):
        output = text_or_json(answer.output)
    else:
        output, *words = compared_texts(config, answer)
    text = normalized(output, config)
    missing = [word for word in words if normalized(str(word), config) not in text]
    # Not 1 - missing / all: 1 - 0.8 is less than 0.2 in binary, which a threshold of 0.2 would fail.
    return (len(words) - len(missing)) / len(words), f"Missing: {', '.join(map(str, missing))}." if missing else ""


def equals(config: Config, answer: Answer) -> tuple[float, str]:
    output, expected = (normalized(text, config).strip() for text in compared_texts(config, answer))
    is_equal = output == expected
    return float(is_equal), "" if is_equal else "The answer differs from the expected text."


def matches_pattern(config: Config, answer: Answer) -> tuple[float, str]:
    if compile_pattern(config["pattern"]).occurs_in(text_or_json(answer.output)):
        return 1.0, ""
    return 0.0, "The pattern does not occur in the answer."


def json_schema(config: Config, answer: Answer) -> tuple[float, str]:
    try:
        value = json.loads(answer.output) if isinstance(answer.output, str) else answer.output
    except (ValueError, RecursionError):
        return 0.0, "The answer is not JSON."
    try:
        errors = SchemaValidator(config["schema"]).errors(value, 1)
    except SchemaUnusable as error:
        raise ScorerError(str(error)) from None
    return float(not errors), f"{errors[0].json_path}: {errors[0].message}"[:1000] if errors else ""


def called_tool(config: Config, answer: Answer) -> tuple[float, str]:
    arguments = config.get("arguments") or {}
    calls = [
        call
        for call in answer.calls
        if call.name == config["tool"]
        and all(json_equal(call.arguments.get(name), value) for name, value in arguments.items())
    ]
    least, most = config.get("times", 1), config.get("times", float("inf"))
    is_met = least <= len(calls) <= most
    return float(is_met), f"The tool was called {pluralize(len(calls), 'time')}."


def no_tool_errors(config: Config, answer: Answer) -> tuple[float, str]:
    failed = [call.name for call in answer.calls if call.is_error]
    return float(not failed), f"Failed: {', '.join(failed)}." if failed else ""


def at_most(name: str, reason: str) -> Check:
    def check(config: Config, answer: Answer) -> tuple[float, str]:
        value = getattr(answer, name)
        if value is None:
            raise NotScorable(f"The {name} of this answer {'is' if name == 'cost' else 'are'} not known.")
        return float(value <= config["max"]), reason.format(value=value, most=config["max"])

    return check


def similarity(config: Config, answer: Answer) -> tuple[float, str]:
    output, expected = (normalized(text, config) for text in compared_texts(config, answer))
    if len(expected) * len(output) > MAX_CHARACTER_PAIRS:
        raise NotScorable(f"Texts of {len(output):,} and {len(expected):,} characters are too long to compare.")
    return fuzz.ratio(output, expected) / 100, ""


CHECKS: dict[str, Check] = {
    "includes": includes,
    "equals": equals,
    "matches": matches_pattern,
    "json-schema": json_schema,
    "called-tool": called_tool,
    "no-tool-errors": no_tool_errors,
    "max-steps": at_most("steps", "{value:g} of at most {most:g} steps."),
    "max-seconds": at_most("seconds", "{value:.3g} of at most {most:g} seconds."),
    "max-cost": at_most("cost", "${value:g} of at most ${most:g}."),
    "similarity": similarity,
}


def score_by_check(config: Config, answer: Answer) -> ScoreResult:
    """Score an answer by a check. Raise NotScorable."""
    score, reason = CHECKS[config["check"]](config, answer)
    threshold = config.get("passThreshold", 1.0)
    return ScoreResult(score, reason, label=PASSED if score >= threshold else FAILED)
