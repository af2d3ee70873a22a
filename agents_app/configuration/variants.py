"""Variants of fields: the model, the memory or the tools of an agent that depend on who calls it.

    {"model": [{"value": {"provider": "openai", "name": "gpt-5"},
                "rules": {"operator": "AND", "conditions": [
                    {"field": "tier", "operator": "equals", "value": "enterprise"}]}}]}

The first variant whose rules hold takes the place of the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.fields.types import validation_error

CONDITIONAL = "conditional"
CONTEXT_KEYS = "contextKeys"
RULE_OPERATORS = (
    "equals",
    "not_equals",
    "contains",
    "not_contains",
    "greater_than",
    "less_than",
    "greater_than_or_equal",
    "less_than_or_equal",
    "in",
    "not_in",
    "exists",
    "not_exists",
)
JOINS = ("AND", "OR")
MAX_RULE_DEPTH = 3  # of groups
MAX_RULE_CONDITIONS = 50  # of a group
MAX_VARIANTS = 20  # of a field

Value = TypeVar("Value")


def rule_faults(rules: object, path: str = "", depth: int = 1) -> Iterator[str]:
    """Yield what is wrong with a group of conditions, with the path inside of it."""
    at = f"{path}: " if path else ""
    if not isinstance(rules, dict) or rules.get("operator") not in JOINS:
        yield f"{at}This must be an object with the operator AND or OR, and a list of conditions."
        return
    conditions = rules.get("conditions")
    if not isinstance(conditions, list) or not 0 < len(conditions) <= MAX_RULE_CONDITIONS:
        yield f"{at}List 1 to {MAX_RULE_CONDITIONS} conditions."
        return
    for index, condition in enumerate(conditions):
        inner = f"{path}{'.' if path else ''}conditions[{index}]"
        if isinstance(condition, dict) and "conditions" in condition:
            if depth == MAX_RULE_DEPTH:
                yield f"{inner}: Groups nest at most {MAX_RULE_DEPTH} deep."
            else:
                yield from rule_faults(condition, inner, depth + 1)
        else:
            yield from condition_faults(condition, inner)


def condition_faults(condition: object, path: str) -> Iterator[str]:
    """Yield what is wrong with a condition."""
    if not isinstance(condition, dict) or not isinstance(condition.get("field"), str) or not condition["field"]:
        yield f"{path}: A condition needs a field, an operator and a value."
    elif condition.get("operator") not in RULE_OPERATORS:
        yield f"{path}.operator: This must be one of {', '.join(RULE_OPERATORS)}."
    elif condition["operator"] in ("in", "not_in") and not isinstance(condition.get("value"), list):
        yield f"{path}.value: This operator needs a list."


def _validate_rules(rules: object) -> object:
    if faults := [*rule_faults(rules)]:
        raise validation_error(" ".join(faults))
    return rules


class Variant(BaseModel, Generic[Value]):
    """A value of a field, with the rules that must hold for it."""

    model_config = ConfigDict(strict=True, extra="allow")

    value: Value
    rules: Annotated[JSONObject, AfterValidator(_validate_rules)]


def choose_variants(configuration: JSONMapping, facts: JSONMapping, claims: JSONMapping) -> dict[str, int]:
    """Return the index of the variant that holds, by field, for the facts and claims of a call.

    Facts win. A claim only counts if the agent names it in its `contextKeys`.
    """
    known = known_values({key: claims[key] for key in configuration.get(CONTEXT_KEYS) or [] if key in claims}, facts)
    chosen = {}
    for field, variants in (configuration.get(CONDITIONAL) or {}).items():
        index = next((i for i, variant in enumerate(variants or []) if holds(variant["rules"], known)), None)
        if index is not None:
            chosen[field] = index
    return chosen


def known_values(claims: JSONMapping, facts: JSONMapping) -> JSONObject:
    """Return the claims and the facts of a call. A claim replaces no fact, and no member of one (`plan.name`)."""
    return {key: value for key, value in claims.items() if key.split(".")[0] not in facts} | dict(facts)


def apply_variants(configuration: JSONMapping, chosen: Mapping[str, int]) -> JSONObject:
    """Return a configuration with the chosen variants in the place of their fields."""
    conditional = configuration.get(CONDITIONAL) or {}
    return {**configuration, **{field: conditional[field][index]["value"] for field, index in chosen.items()}}


def holds(rules: JSONMapping, known: JSONMapping) -> bool:
    """Return True if a group of conditions, or a condition, holds."""
    if "conditions" not in rules:
        return condition_holds(rules["operator"], find_known(known, rules["field"]), rules.get("value"))
    join = all if rules["operator"] == "AND" else any
    return join(holds(condition, known) for condition in rules["conditions"])


def find_known(known: JSONMapping, path: str) -> object:
    """Return the value of a key that is the whole path, or the one at the path. None if there is none."""
    if path in known:
        return known[path]
    value: JSONValue = known
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def condition_holds(operator: str, actual: JSONValue, expected: JSONValue) -> bool:
    """Return True if a value fulfils a condition. Values of different types are different, and not in order."""
    name = operator.removeprefix("not_")
    if operator.startswith("not_"):
        return not condition_holds(name, actual, expected)
    if name == "exists":
        return actual is not None
    if name == "equals":
        return json_equal(actual, expected)
    if name == "in":
        return any(json_equal(actual, item) for item in expected or [])
    if name == "contains":
        if isinstance(actual, str):
            return isinstance(expected, str) and expected in actual
        return isinstance(actual, list) and any(json_equal(item, expected) for item in actual)
    return is_ordered(name, actual, expected)


def is_ordered(name: str, actual: JSONValue, expected: JSONValue) -> bool:
    """Return True if two numbers or two texts are in the order that an operator says."""
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (actual, expected))
    if not (are_numbers or (isinstance(actual, str) and isinstance(expected, str))):
        return False
    if name.endswith("or_equal") and actual == expected:
        return True
    return bool(actual > expected if name.startswith("greater") else actual < expected)
