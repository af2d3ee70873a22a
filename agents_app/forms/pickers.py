"""What the editor offers to pick from: what is registered, what is stored, and what an agent names all the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from agents_app.models import Agent
from agents_app.registry import Entry, Kind, registry

MAX_SUB_AGENT_OPTIONS = 200  # offered at once; more are named by their id


class PickerOption(NamedTuple):
    """One thing to pick."""

    key: str
    title: str
    description: str
    checked: bool


@dataclass(frozen=True)
class Picker:
    """The things that one field may name, and those that it names although nothing is registered there."""

    name: str
    label: str
    options: list[PickerOption]
    missing: list[str]
    empty: str

    @classmethod
    def of(cls, name: str, label: str, offered: Iterable[tuple[str, str, str]], chosen: Collection[str]) -> Picker:
        options = [PickerOption(*each, each[0] in chosen) for each in offered]
        known = {option.key for option in options}
        missing = [key for key in chosen if key not in known]
        return cls(name, label, options, missing, f"No {label.lower()} are registered. They are registered in code.")


def registry_options(kind: Kind, chosen: Collection[str] = ()) -> list[tuple[str, str, str]]:
    """What is registered, under the name by which it was chosen: its key, or else its id."""
    return [
        (entry.id if entry.id in chosen and entry.key not in chosen else entry.key, entry.title, describe_entry(entry))
        for entry in registry.entries(kind)
    ]


def describe_entry(entry: Entry) -> str:
    asks = " A person approves each use." if entry.requires_approval else ""
    return f"{entry.description}{asks}".strip()


def integration_tool_options() -> list[tuple[str, str, str]]:
    return [
        (f"{entry.key}_{name}", f"{entry.title}: {name.replace('_', ' ')}", entry.description)
        for entry in registry.entries(Kind.INTEGRATION_PROVIDER)
        for name in entry.names
    ]


def usable_agents(user: Any, owner_id: str) -> Any:
    """The stored agents that an agent of this owner may use, and that the person may see."""
    return Agent.objects.for_user(user).usable_by(owner_id)


def sub_agent_options(user: Any, owner_id: str, own_id: str, chosen: Collection[str]) -> list[tuple[str, str, str]]:
    """Stored sub-agents, the chosen ones among them, and those that live in code."""
    usable = usable_agents(user, owner_id).exclude(pk=own_id).order_by("name", "id")
    columns = ("id", "name", "description")
    first = {row[0]: row for row in usable.values_list(*columns)[:MAX_SUB_AGENT_OPTIONS]}
    if wanted := [key for key in chosen if key not in first]:
        first |= {row[0]: row for row in usable.filter(pk__in=wanted).values_list(*columns)}
    in_code = [(key, title, f"{text} Lives in code.".strip()) for key, title, text in registry_options(Kind.AGENT)]
    return [*in_code, *(row for key, row in first.items() if registry.get(Kind.AGENT, key) is None)]
