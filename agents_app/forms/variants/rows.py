"""The inputs of variants.

The names of the inputs, for the variants of a field such as `model`; `row` is a name that no other variant has:

    conditional                     sent by every page that has the variants
    context_keys                    the claims that count, separated by commas
    variant-model                   the name of each variant, in order
    variant-model-<row>-provider, -name, -temperature, -topP, -maxTokens, -rest
                                    the value: a model, its usual settings, and the others as JSON
    variant-memory-<row>-key, variant-tools-<row>-keys
                                    the value: a registered memory, the chosen tools
    variant-model-<row>-json        the value as JSON, if the inputs cannot show it
    variant-model-<row>-join        AND or OR
    variant-model-<row>-field, -operator, -expected
                                    each condition; one without a field is ignored
    variant-model-<row>-rules       the rules as JSON, if they have groups
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from agents_app.configuration.conditional import RULE_OPERATORS

VARIANT_FIELDS = {"model": "Model", "memory": "Memory", "tools": "Tools"}
SETTING_LABELS = {"temperature": "Temperature", "topP": "Top P", "maxTokens": "Max tokens"}
VALUE_INPUTS = {"model": ("provider", "name", *SETTING_LABELS, "rest"), "memory": ("key",), "tools": ()}
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
NO_RULES = {"operator": "AND", "conditions": []}
NEW_CONDITIONS = 2  # inputs for further conditions
KNOWN_FACTS = ("userId", "roles", "owner")

ConditionTexts = tuple[str, str, str]  # field, operator, text of the value


@dataclass
class VariantRow:
    """A variant as texts of inputs. `json` and `rules` are blank if the other inputs show them."""

    field: str
    row: str
    texts: dict[str, str] = dataclass_field(default_factory=dict)
    keys: list[str] = dataclass_field(default_factory=list)
    join: str = "AND"
    conditions: list[ConditionTexts] = dataclass_field(default_factory=list)
    json: str = ""
    rules: str = ""
    error: str = ""

    @property
    def prefix(self) -> str:
        return f"variant-{self.field}-{self.row}"

    @property
    def is_blank(self) -> bool:
        return not (any(self.texts.values()) or self.keys or self.conditions or self.json or self.rules)

    @property
    def setting_inputs(self) -> list[tuple[str, str, str]]:
        """Return the name, label and text of each usual setting of a model."""
        return [(name, label, self.texts.get(name, "")) for name, label in SETTING_LABELS.items()]

    @property
    def condition_inputs(self) -> list[ConditionTexts]:
        """Return the conditions, and inputs for further ones."""
        return [*self.conditions, *([("", "equals", "")] * NEW_CONDITIONS)]

    @property
    def operators(self) -> list[tuple[str, str]]:
        return [(name, OPERATOR_LABELS[name]) for name in RULE_OPERATORS]


@dataclass(frozen=True)
class VariantGroup:
    """The variants of a field, for the template, and an empty one to fill in."""

    field: str
    label: str
    rows: list[VariantRow]
    blank: VariantRow
