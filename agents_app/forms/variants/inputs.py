"""The variants of an agent for the editor's form and its template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from django.core.exceptions import ValidationError

from agents_app.forms.form_data import FormData
from agents_app.forms.objects.members import parse_tags
from agents_app.forms.pickers import OptionSource, PickerOption
from agents_app.forms.variants.composing import compose_context_keys, compose_variants, submitted_rows
from agents_app.forms.variants.describing import describe_variants
from agents_app.forms.variants.rows import KNOWN_FACTS, VARIANT_FIELDS, VariantGroup, VariantRow
from agents_app.registry import Kind, registry


@dataclass
class VariantInputs:
    """The variants of an agent in the editor."""

    rows: list[VariantRow]
    context_keys: str
    source: OptionSource  # of the tools
    errors: list[ValidationError] = dataclass_field(default_factory=list)

    @classmethod
    def stored(cls, value: object, context_keys: Sequence[str] | None, source: OptionSource) -> VariantInputs:
        return cls(describe_variants(value), ", ".join(context_keys or ()), source)

    @classmethod
    def submitted(cls, data: FormData, source: OptionSource) -> VariantInputs:
        return cls(submitted_rows(data), str(data.get("context_keys") or "").strip(), source)

    def compose(self, stored: object, stored_keys: Sequence[str] | None) -> tuple[Any, list[str] | None]:
        """Return the values of `conditional` and `context_keys`, and set the errors."""
        value, self.errors = compose_variants(self.rows, stored)
        # With errors, the value lacks their variants, which must not seem to be removed.
        return (stored if self.errors else value), compose_context_keys(self.context_keys, stored_keys)

    @property
    def is_set(self) -> bool:
        return bool(self.rows or self.context_keys)

    @property
    def groups(self) -> list[VariantGroup]:
        """Return the variants by field, each group with an empty one."""
        taken = {row.row for row in self.rows}
        token = next(name for number in range(1, len(taken) + 2) if (name := f"n{number}") not in taken)
        return [
            VariantGroup(name, label, [row for row in self.rows if row.field == name], VariantRow(name, token))
            for name, label in VARIANT_FIELDS.items()
        ]

    @property
    def fact_names(self) -> list[str]:
        """Return the names of facts and claims to suggest for a condition."""
        used = (name for row in self.rows for name in row.conditions.fields)
        return [*dict.fromkeys([*KNOWN_FACTS, *parse_tags(self.context_keys), *used])]

    @property
    def memories(self) -> list[tuple[str, str]]:
        """Return the registered memories, and those that variants name."""
        known = {entry.key: entry.title for entry in registry.entries(Kind.MEMORY)}
        keys = dict.fromkeys(row.texts.get("key", "") for row in self.rows)
        return [*known.items(), *((key, f"{key} (not registered)") for key in keys if key and key not in known)]

    @property
    def tools(self) -> list[PickerOption]:
        """Return the tools that a variant can have: those of any variant first, then the registered ones."""
        keys = [*dict.fromkeys(key for row in self.rows for key in row.keys)]
        return [*self.source.describe(keys), *self.source.registered(keys)]
