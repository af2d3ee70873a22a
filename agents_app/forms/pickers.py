"""The pickers of the editor: what is chosen, in order, and a search for what can be added."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from django.db.models import Q

from access_app.caller import Caller
from agentcms.db.text_conditions import MAX_SEARCH_WORDS, contains_text
from agents_app.configuration.acp_agents import ACP_KINDS
from agents_app.configuration.references import find_entry
from agents_app.models import Agent, AgentQuerySet
from agents_app.registry import Entry, Kind, registry

MAX_PICKER_OPTIONS = 20  # of one search; more words find the others
MAX_CHOSEN_ROWS = 100  # with buttons; a page with a thousand of them in several fields has megabytes

KIND_BY_FIELD = {
    "tools": Kind.TOOL,
    "workflows": Kind.WORKFLOW,
    "agents": Kind.AGENT,
    "integration_tools": Kind.INTEGRATION_PROVIDER,
    "input_processors": Kind.PROCESSOR,
    "output_processors": Kind.PROCESSOR,
}
NOUNS = {
    "tools": "tool",
    "workflows": "workflow",
    "agents": "sub-agent",
    "integration_tools": "integration tool",
    "input_processors": "input processor",
    "output_processors": "output processor",
}


class PickerOption(NamedTuple):
    """Something that can be chosen, or that is chosen. It is missing if it is not registered or not usable."""

    key: str
    title: str
    description: str = ""
    is_missing: bool = False


class OptionPage(NamedTuple):
    """The first options that a search returned, and how many more there are."""

    options: list[PickerOption]
    more: int


@dataclass(frozen=True)
class Picker:
    """A field with a list of keys: the chosen ones in order, and the first that can be added."""

    name: str
    label: str
    chosen: list[PickerOption]
    page: OptionPage

    @property
    def noun(self) -> str:
        return NOUNS[self.name]

    @property
    def rows(self) -> list[PickerOption]:
        """The chosen options that have a row with buttons."""
        return self.chosen[:MAX_CHOSEN_ROWS]

    @property
    def rest(self) -> list[PickerOption]:
        """The other chosen options, which only have a checkbox."""
        return self.chosen[MAX_CHOSEN_ROWS:]


@dataclass(frozen=True)
class OptionSource:
    """The options of a field for a user who edits an agent."""

    field: str
    user: Caller
    agent: Agent

    @property
    def kind(self) -> Kind:
        return KIND_BY_FIELD[self.field]

    def search(self, query: str = "", chosen: Collection[str] = ()) -> OptionPage:
        """Return the options that contain all words of a query, without chosen ones."""
        words = query.lower().split()[:MAX_SEARCH_WORDS]
        results = [option for option in self.registered(chosen) if option_matches(option, words)]
        if self.kind is not Kind.AGENT:
            return OptionPage(results[:MAX_PICKER_OPTIONS], max(len(results) - MAX_PICKER_OPTIONS, 0))
        stored = self.usable_agents(chosen).filter(reduce(lambda query, word: query & word_query(word), words, Q()))
        rows = stored.order_by("name", "id").values_list("id", "name", "description")[: MAX_PICKER_OPTIONS + 1]
        results += [PickerOption(*row) for row in rows]
        more = len(results) - MAX_PICKER_OPTIONS
        # Only then: a count reads all matches.
        if len(rows) > MAX_PICKER_OPTIONS:
            more += stored.count() - len(rows)
        return OptionPage(results[:MAX_PICKER_OPTIONS], max(more, 0))

    def registered(self, chosen: Collection[str] = ()) -> list[PickerOption]:
        """Return the options that are registered in code."""
        if self.kind is Kind.INTEGRATION_PROVIDER:
            return [option for option in integration_tools() if option.key not in chosen]
        note = " Registered in code." if self.kind is Kind.AGENT else ""
        in_code = [
            PickerOption(entry.key, entry.title, f"{describe_entry(entry)}{note}".strip())
            for entry in registry.entries(self.kind)
            # An agent may name an entry by its ID in place of its key.
            if entry.key not in chosen and not (entry.id and entry.id in chosen)
        ]
        return in_code + [option for option in acp_agents(self.kind) if option.key not in chosen]

    def usable_agents(self, chosen: Collection[str] = ()) -> AgentQuerySet:
        """Return the stored agents that the agent may use and the user may see."""
        usable = Agent.objects.for_user(self.user).usable_by(self.agent.owner_id).exclude(pk=self.agent.pk)
        # A key that code registers means the agent in code, which is an option already.
        usable = usable.exclude(pk__in=[entry.key for entry in registry.entries(Kind.AGENT)])
        return usable.exclude(pk__in=list(chosen)) if chosen else usable

    def describe(self, keys: Sequence[str]) -> list[PickerOption]:
        """Return the options of chosen keys, in order."""
        entries = {key: find_entry(self.kind, key) for key in keys}
        unknown = [key for key, entry in entries.items() if entry is None]
        names: dict[str, tuple[str, str]] = {}
        if unknown and self.kind is Kind.AGENT:
            rows = self.usable_agents().with_ids(unknown).order_by().values_list("id", "name", "description")
            names = {key: (name, description) for key, name, description in rows}
        archived = self._archived_among([key for key in unknown if key not in names])
        return [
            PickerOption(key, key, "archived", is_missing=True)
            if key in archived
            else self._describe_key(key, entry, names.get(key))
            for key, entry in entries.items()
        ]

    def _archived_among(self, keys: Sequence[str]) -> set[str]:
        """Return the keys of agents that are only missing because they are archived."""
        if not keys or self.kind is not Kind.AGENT:
            return set()
        agents = Agent.objects.for_user(self.user).archived().of_usable_owners(self.agent.owner_id)
        return {*agents.with_ids(keys).order_by().values_list("pk", flat=True)}

    def _describe_key(self, key: str, entry: Entry | None, stored: tuple[str, str] | None) -> PickerOption:
        if entry is not None and self.kind is Kind.INTEGRATION_PROVIDER:
            return PickerOption(key, integration_tool_title(entry, key.partition("_")[2]), entry.description)
        if entry is not None and entry.unavailable_reason:
            return PickerOption(key, entry.title, entry.unavailable_reason, is_missing=True)
        if entry is not None:
            return PickerOption(key, entry.title, describe_entry(entry))
        return PickerOption(key, *stored) if stored else PickerOption(key, key, is_missing=True)


def acp_agents(kind: Kind) -> list[PickerOption]:
    """Return the ACP agents that can be used now, for the fields that may name them."""
    return [
        PickerOption(entry.key, entry.title, f"{describe_entry(entry)} ACP agent.".strip())
        for entry in (registry.selectable(Kind.ACP_AGENT) if kind in ACP_KINDS else ())
        if not entry.unavailable_reason
    ]


def build_picker(source: OptionSource, label: str, chosen: Sequence[str]) -> Picker:
    return Picker(source.field, label, source.describe(chosen), source.search(chosen=chosen))


def option_matches(option: PickerOption, words: Iterable[str]) -> bool:
    text = f"{option.title} {option.key} {option.description}".lower()
    return all(word in text for word in words)


def word_query(word: str) -> Q:
    """Return the condition for agents with a word in their name, ID or description, in upper or lower case."""
    return contains_text("name", word) | contains_text("id", word) | contains_text("description", word)


def describe_entry(entry: Entry) -> str:
    approval = " Each use needs approval." if entry.requires_approval else ""
    return f"{entry.description}{approval}".strip()


def integration_tools() -> list[PickerOption]:
    return [
        PickerOption(f"{entry.key}_{name}", integration_tool_title(entry, name), entry.description)
        for entry in registry.entries(Kind.INTEGRATION_PROVIDER)
        for name in entry.names
    ]


def integration_tool_title(entry: Entry, name: str) -> str:
    return f"{entry.title}: {name.replace('_', ' ')}"
