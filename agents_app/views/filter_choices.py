"""The fields of the filter panel of the agent list, with the values that occur in visible agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef
from django.db.models.fields.json import KT

from access_app.role import SHARED_LABEL
from agents_app.configuration.tags import read_tags
from agents_app.models import AgentQuerySet
from agents_app.views.list_filters import ANY_OWNER, UPDATED_LABELS, AgentListState, model_title, tool_title
from versions_app.models import AgentVersion

MAX_CHOICES = 500


class Choice(NamedTuple):
    value: str
    label: str
    is_selected: bool


class FilterField(NamedTuple):
    """A selection field of the panel. If there are too many values to offer all, a value is typed."""

    name: str
    label: str
    choices: list[Choice]
    selected: str = ""
    total: int = 0

    @property
    def is_typed(self) -> bool:
        return self.total > MAX_CHOICES


def filter_fields(listing: AgentListState, owners: Sequence[str]) -> list[FilterField]:
    """Return the fields of the panel. `owners` are those whose agents the user may see."""
    # Without the order, whose columns would count for `distinct()` too.
    filters, agents = listing.filters, listing.agents.order_by()
    owner = ANY_OWNER if filters.owner is None else filters.owner
    return [
        build_filter_field("model", "Model", filters.model, model_choices(agents)),
        build_filter_field("tool", "Tool", filters.tool, sorted((tool_title(key), key) for key in used_tools(agents))),
        build_filter_field("tag", "Tag", "", ((tag, tag) for tag in used_tags(agents) if tag not in filters.tags)),
        build_filter_field("owner", "Team", owner, ((key or SHARED_LABEL, key) for key in owners), ANY_OWNER),
        build_filter_field("author", "Author", filters.author, ((name, name) for name in authors_of(agents))),
        build_filter_field(
            "updated", "Updated", filters.updated, ((label, key) for key, label in UPDATED_LABELS.items())
        ),
    ]


def build_filter_field(
    name: str, label: str, selected: str, choices: Iterable[tuple[str, str]], any_value: str = ""
) -> FilterField:
    """Return a field with the choice of any value, and the selected value even if no agent has it."""
    options = [*choices]
    values = {any_value: "Any"} | {value: text for text, value in options[:MAX_CHOICES]}
    # A link may name a value that no agent has any more. Without it, the select would show another one.
    values.setdefault(selected, selected)
    rows = [Choice(value, text, value == selected) for value, text in values.items()]
    return FilterField(name, label, rows, selected, len(options))


def model_choices(agents: AgentQuerySet) -> Iterator[tuple[str, str]]:
    """Yield each provider that agents use, followed by its models."""
    columns = agents.annotate(provider=KT("model__provider"), model_name=KT("model__name"))
    used = sorted(columns.values_list("provider", "model_name").distinct())
    for provider in dict.fromkeys(provider for provider, _ in used):
        yield model_title(provider), provider
        for name in (name for other, name in used if other == provider):
            value = f"{provider}/{name}"
            yield model_title(value), value


def used_tools(agents: AgentQuerySet) -> set[str]:
    used = agents.values_list("tools", "integration_tools").distinct()
    return {key for lists in used for keys in lists for key in keys}


def used_tags(agents: AgentQuerySet) -> list[str]:
    texts = agents.filter(metadata__has_key="tags").annotate(tags_json=KT("metadata__tags"))
    used = texts.values_list("tags_json", flat=True).distinct()
    return sorted({tag for text in used for tag in read_tags(text)}, key=lambda tag: (tag.lower(), tag))


def authors_of(agents: AgentQuerySet) -> list[str]:
    """Return the usernames of those who made a version of the agents."""
    versions = AgentVersion.objects.filter(author=OuterRef("pk"), agent__in=agents.values("pk")).order_by()
    users = get_user_model().objects.filter(Exists(versions))
    return list(users.order_by("username").values_list("username", flat=True))
