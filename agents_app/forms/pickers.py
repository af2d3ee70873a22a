"""The options of the editor's pickers: registry entries, stored agents and missing references."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from access_app.caller import Caller
from agents_app.models import Agent, AgentQuerySet
from agents_app.registry import Entry, Kind, registry

MAX_SUB_AGENT_OPTIONS = 200  # more are added by ID


class PickerOption(NamedTuple):
    """An option of a picker."""

    key: str
    title: str
    description: str
    checked: bool


@dataclass(frozen=True)
class Picker:
    """The options of a field, and its keys that are not registered."""

    name: str
    label: str
    options: list[PickerOption]
    missing: list[str]
    empty: str

    @classmethod
    def build(cls, name: str, label: str, choices: Iterable[tuple[str, str, str]], chosen: Collection[str]) -> Picker:
        options = [PickerOption(*choice, choice[0] in chosen) for choice in choices]
        known = {option.key for option in options}
        missing = [key for key in chosen if key not in known]
        return cls(name, label, options, missing, f"No {label.lower()} are registered. Register them in code.")


def registry_options(kind: Kind, chosen: Collection[str] = ()) -> list[tuple[str, str, str]]:
    """Return key, title and description of each registered entry, with its ID as key if it was chosen by ID."""
    return [
        (entry.id if entry.id in chosen and entry.key not in chosen else entry.key, entry.title, describe_entry(entry))
        for entry in registry.entries(kind)
    ]


def describe_entry(entry: Entry) -> str:
    approval = " Each use needs approval." if entry.requires_approval else ""
    return f"{entry.description}{approval}".strip()


def integration_tool_options() -> list[tuple[str, str, str]]:
    return [
        (f"{entry.key}_{name}", f"{entry.title}: {name.replace('_', ' ')}", entry.description)
        for entry in registry.entries(Kind.INTEGRATION_PROVIDER)
        for name in entry.names
    ]


def usable_agents(user: Caller, owner_id: str) -> AgentQuerySet:
    """Return the stored agents that an agent of this owner may use and the user may see."""
    return Agent.objects.for_user(user).usable_by(owner_id)


def sub_agent_options(user: Caller, owner_id: str, own_id: str, chosen: Collection[str]) -> list[tuple[str, str, str]]:
    """Return the agents registered in code and the stored ones, including all chosen ones."""
    usable = usable_agents(user, owner_id).exclude(pk=own_id).order_by("name", "id")
    columns = ("id", "name", "description")
    rows = {row[0]: row for row in usable.values_list(*columns)[:MAX_SUB_AGENT_OPTIONS]}
    if others := [key for key in chosen if key not in rows]:
        rows |= {row[0]: row for row in usable.filter(pk__in=others).values_list(*columns)}
    in_code = [
        (key, title, f"{text} Registered in code.".strip()) for key, title, text in registry_options(Kind.AGENT)
    ]
    return [*in_code, *(row for key, row in rows.items() if registry.get(Kind.AGENT, key) is None)]
