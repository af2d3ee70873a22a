"""The inputs of a memory in groups, for the template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.core.exceptions import ValidationError

from agents_app.forms.memory.inputs import GROUPS, INPUT_PREFIX, MemoryGroup, MemoryInput
from agents_app.forms.objects.members import texts_at


@dataclass(frozen=True)
class MemoryRow:
    """An input with its text and its error, for the template."""

    input: MemoryInput
    prefix: str  # of its name
    text: str
    error: str = ""

    @property
    def name(self) -> str:
        return f"{self.prefix}{self.input.path}"

    @property
    def id(self) -> str:
        return f"id_{self.name.replace('.', '-')}"


@dataclass(frozen=True)
class MemorySection:
    """A group with its rows, for the template."""

    group: MemoryGroup
    rows: list[MemoryRow]
    switch: MemoryRow | None

    @property
    def is_on(self) -> bool:
        return self.switch is None or bool(self.switch.text)


def build_memory_sections(
    texts: Mapping[str, str], errors: Iterable[ValidationError], prefix: str = INPUT_PREFIX
) -> list[MemorySection]:
    """Return the groups with their texts, and each error at its input."""
    errors = [*errors]

    def build_row(item: MemoryInput) -> MemoryRow:
        return MemoryRow(item, prefix, texts.get(item.path, ""), texts_at(errors, f"{prefix}{item.path}"))

    return [
        MemorySection(group, [*map(build_row, group.inputs)], build_row(group.switch) if group.switch else None)
        for group in GROUPS
    ]
