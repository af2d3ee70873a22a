"""Groups of conditions as inputs.

The names of the inputs of a group, which begin with its prefix:

    <prefix>-join                          AND or OR
    <prefix>-field, -operator, -expected   each condition in order; one without a field is ignored
                                           the operator `group:<name>` marks the position of an inner group,
                                           whose prefix is `<prefix>-<name>`
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.variants import JOINS, MAX_RULE_DEPTH, RULE_OPERATORS
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.field import get_submitted_list
from agents_app.forms.objects.members import format_text_or_json, normalize_line, parse_tags, parse_text_or_json

OPERATOR_LABELS = {
    "equals": "is",
    "not_equals": "is not",
    "contains": "contains",
    "not_contains": "does not contain",
    "greater_than": "more than",
    "less_than": "less than",
    "greater_than_or_equal": "at least",
    "less_than_or_equal": "at most",
    "in": "is one of",
    "not_in": "is none of",
    "exists": "is known",
    "not_exists": "is not known",
}
LIST_OPERATORS = ("in", "not_in")
VALUELESS_OPERATORS = ("exists", "not_exists")
GROUP_MARK = "group:"  # begins the operator that stands for a group
NEW_CONDITIONS = 2  # inputs for further conditions


class ConditionTexts(NamedTuple):
    """A condition as texts of inputs."""

    field: str = ""
    operator: str = "equals"
    text: str = ""

    @classmethod
    def describe(cls, condition: object) -> ConditionTexts:
        """Return the texts of a stored condition. Blank ones give nothing back."""
        if not isinstance(condition, dict):
            return cls()
        value, operator = condition.get("value"), str(condition.get("operator"))
        if operator in LIST_OPERATORS and isinstance(value, list):
            text = ", ".join(item if isinstance(item, str) else json.dumps(item) for item in value)
        else:
            text = format_text_or_json(value)
        text = "" if operator in VALUELESS_OPERATORS else text
        return cls(normalize_line(str(condition.get("field"))).strip(), operator, normalize_line(text).strip())

    def compose(self) -> JSONObject:
        condition: JSONObject = {"field": self.field, "operator": self.operator}
        if self.operator in VALUELESS_OPERATORS:
            return condition
        is_list = self.operator in LIST_OPERATORS
        value: JSONValue = (
            [parse_text_or_json(item) for item in parse_tags(self.text)] if is_list else parse_text_or_json(self.text)
        )
        return {**condition, "value": value}


@dataclass
class ConditionGroup:
    """Conditions and further groups, all or any of which must match. `name` is that of a group inside another one."""

    prefix: str
    name: str = ""
    join: str = "AND"
    items: list[ConditionTexts | ConditionGroup] = dataclass_field(default_factory=list)
    depth: int = 1

    @classmethod
    def describe(cls, rules: JSONMapping, prefix: str, name: str = "", depth: int = 1) -> ConditionGroup:
        """Return the inputs of stored rules."""
        group = cls(prefix, name, str(rules.get("operator", "AND")), depth=depth)
        for index, item in enumerate(rules.get("conditions", ())):
            if isinstance(item, dict) and "conditions" in item:
                group.items.append(cls.describe(item, f"{prefix}-g{index}", f"g{index}", depth + 1))
            else:
                group.items.append(ConditionTexts.describe(item))
        return group

    @classmethod
    def from_data(cls, data: FormData, prefix: str, name: str = "", depth: int = 1) -> ConditionGroup:
        """Return what was submitted, without conditions and groups in which nothing is filled in."""
        group = cls(prefix, name, str(data.get(f"{prefix}-join") or "AND"), depth=depth)
        columns = (get_submitted_list(data, f"{prefix}-{column}") for column in ConditionTexts._fields[:2])
        names: set[str] = set()
        for field, operator, text in zip(*columns, get_submitted_list(data, f"{prefix}-expected"), strict=False):
            inner = operator.removeprefix(GROUP_MARK)
            if inner == operator:
                group.items += [ConditionTexts(field.strip(), operator, text.strip())] if field.strip() else []
            # Each name once: a form made by hand could name one group many times, at each depth.
            elif depth < MAX_RULE_DEPTH and inner not in names:
                names.add(inner)
                inner_group = cls.from_data(data, f"{prefix}-{inner}", inner, depth + 1)
                group.items += [inner_group] if inner_group.items else []
        return group

    def compose(self) -> JSONObject:
        operator = self.join if self.join in JOINS else "AND"
        return {"operator": operator, "conditions": [item.compose() for item in self.items]}

    # --- for the template

    @property
    def outer(self) -> str:
        """Return the prefix of the group around this one."""
        return self.prefix.removesuffix(f"-{self.name}")

    @property
    def rows(self) -> Sequence[tuple[ConditionTexts | None, ConditionGroup | None]]:
        """Return the condition or the group of each row, and inputs for further conditions."""
        items = [*self.items, *([ConditionTexts()] * NEW_CONDITIONS)]
        return [(None, item) if isinstance(item, ConditionGroup) else (item, None) for item in items]

    @property
    def blank_group(self) -> ConditionGroup | None:
        """Return a group to fill in, or None at the deepest level."""
        if self.depth == MAX_RULE_DEPTH:
            return None
        # A name that no other group has, or both would read the same inputs.
        taken = {item.name for item in self.items if isinstance(item, ConditionGroup)}
        name = next(name for number in range(len(taken) + 1) if (name := f"new{number}") not in taken)
        return ConditionGroup(
            f"{self.prefix}-{name}", name, "OR" if self.join == "AND" else "AND", depth=self.depth + 1
        )

    @property
    def fields(self) -> list[str]:
        """Return the facts of all conditions."""
        return [
            name for item in self.items for name in (item.fields if isinstance(item, ConditionGroup) else [item.field])
        ]

    @property
    def operators(self) -> list[tuple[str, str]]:
        return [(name, OPERATOR_LABELS[name]) for name in RULE_OPERATORS]
