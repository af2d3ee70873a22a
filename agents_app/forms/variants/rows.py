"""The inputs of variants.

The names of the inputs, for the variants of a field such as `model`; `row` is a name that no other variant has:

    conditional                     sent by every page that has the variants
    context_keys                    the claims that count, separated by commas
    variant-model                   the name of each variant, in order
    variant-model-<row>-provider, -name, -temperature, -topP, -maxTokens
                                    the value: a model and its usual settings
    variant-model-<row>-rest-row-name, …
                                    its other settings, as in `objects.field`
    variant-memory-<row>-kind       "registered", with the memory in -key, or "options", with an input for each option
    variant-tools-<row>-keys        the chosen tools
    variant-model-<row>-json        the value as JSON, if the inputs cannot show it
    variant-model-<row>-join, …     the conditions, as in `conditions`
    variant-model-<row>-rules       the rules as JSON, if the inputs cannot show them
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from agentcms.wire.json_types import JSONValue
from agents_app.forms.memory.inputs import ALL_INPUTS
from agents_app.forms.memory.sections import MemorySection, build_memory_sections
from agents_app.forms.objects.field import ObjectInputs
from agents_app.forms.objects.members import InputError, texts_at
from agents_app.forms.variants.conditions import ConditionGroup

VARIANT_FIELDS = {"model": "Model", "memory": "Memory", "tools": "Tools"}
SETTING_LABELS = {"temperature": "Temperature", "topP": "Top P", "maxTokens": "Max tokens"}
OPTIONS = "options"  # the kind of a memory with options of its own
VALUE_INPUTS = {
    "model": ("provider", "name", *SETTING_LABELS),
    "memory": ("key", *(item.path for item in ALL_INPUTS)),
    "tools": (),
}
NO_RULES = {"operator": "AND", "conditions": []}
KNOWN_FACTS = ("userId", "roles", "owner")


@dataclass
class VariantRow:
    """A variant as texts of inputs. `json` and `rules` are blank if the other inputs show them.

    `stored` is the value before the change. Options of a memory that have no input stay as they are in it.
    """

    field: str
    row: str
    texts: dict[str, str] = dataclass_field(default_factory=dict)
    kind: str = ""  # of a memory
    rest: ObjectInputs = dataclass_field(default_factory=lambda: ObjectInputs(()))
    keys: list[str] = dataclass_field(default_factory=list)
    conditions: ConditionGroup = dataclass_field(default_factory=lambda: ConditionGroup(""))
    json: str = ""
    rules: str = ""
    stored: JSONValue = None
    errors: list[InputError] = dataclass_field(default_factory=list)

    def __post_init__(self) -> None:
        # The default group is made without the row, with whose prefix the names of its inputs begin.
        self.conditions.prefix = self.conditions.prefix or self.prefix

    @property
    def prefix(self) -> str:
        return f"variant-{self.field}-{self.row}"

    @property
    def is_blank(self) -> bool:
        has_value = any(self.texts.values()) or self.rest.rows or self.keys or self.json
        return not (has_value or self.conditions.items or self.rules)

    @property
    def setting_inputs(self) -> list[tuple[str, str, str, str]]:
        """Return the name, label, text and error of each usual setting of a model."""
        errors = self.error_at
        return [
            (name, label, self.texts.get(name, ""), errors.get(name, "")) for name, label in SETTING_LABELS.items()
        ]

    @property
    def error_at(self) -> dict[str, str]:
        """Return the text of each error by the input that it belongs to, such as `provider` or `field`."""
        targets = {
            error.target: error.target.removeprefix(f"{self.prefix}-").partition(":")[0] for error in self.errors
        }
        return {part: texts_at(self.errors, f"{self.prefix}-{part}") for part in targets.values()}

    def input_error(self, part: str, message: str) -> InputError:
        """Return an error of an input of this variant."""
        return InputError(message, f"{self.prefix}-{part}:0")

    @property
    def memory_sections(self) -> list[MemorySection]:
        return build_memory_sections(self.texts, self.errors, f"{self.prefix}-")


@dataclass(frozen=True)
class VariantGroup:
    """The variants of a field, for the template, and an empty one to fill in."""

    field: str
    label: str
    rows: list[VariantRow]
    blank: VariantRow
