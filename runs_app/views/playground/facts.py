"""Facts to try with: what the playground says of the caller, so that publishers see the variants of an agent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from django.http import HttpRequest, QueryDict

from access_app.role import Role
from agentcms.wire.json_parser import InvalidJSON, parse_typed_json
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.display import variant_title
from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.configuration.variants import CONDITIONAL, CONTEXT_KEYS
from agents_app.forms.objects.members import parse_text_or_json
from agents_app.models import Agent
from agents_app.views.access import has_role_for
from runs_app.resolution import ResolvedAgent

FACT_PREFIX = "fact-"
MAX_TRY_FACTS = 20
MAX_FACT_LENGTH = 500

FactTexts = dict[str, str]


class FactField(NamedTuple):
    """An input of a fact, with the values that the conditions compare it with."""

    name: str
    text: str
    suggestions: tuple[str, ...]

    @property
    def input_name(self) -> str:
        return f"{FACT_PREFIX}{quote(self.name, safe='')}"


def submitted_facts(query: QueryDict) -> FactTexts:
    """Return the texts of the facts in a form, or those in the URL of a page."""
    names = [name for name in query if name.startswith(FACT_PREFIX)]
    if names:
        # Without NUL, which no database stores as JSON.
        texts = {
            unquote(name.removeprefix(FACT_PREFIX)).replace("\0", ""): str(query[name]).replace("\0", "").strip()
            for name in names
        }
    else:
        texts = parse_facts(query.get("facts", ""))
    return {name: text[:MAX_FACT_LENGTH] for name, text in [*texts.items()][:MAX_TRY_FACTS] if text}


def parse_facts(text: str) -> FactTexts:
    """Return the facts in a URL. Those that are not JSON, or that could not be stored, are ignored."""
    try:
        # Not json.loads(), which accepts half of a surrogate pair: no page can be encoded with it.
        value = parse_typed_json(text or "{}")
    except InvalidJSON:
        return {}
    return (
        {str(name): item for name, item in value.items() if isinstance(item, str)} if isinstance(value, dict) else {}
    )


def may_try_facts(request: HttpRequest, agent: Agent) -> bool:
    """Return whether the user may ask the agent as another caller. Its publishers decide who gets which variant."""
    return has_role_for(request, agent, Role.PUBLISHER)


def fact_values(texts: FactTexts) -> JSONObject:
    """Return the facts of these texts. A JSON value stands for itself, such as 3 or ["editor"]."""
    return {name: parse_tried_fact(text) for name, text in texts.items()}


def parse_tried_fact(text: str) -> object:
    """Return the value of an input. It may be a list or an object, which a fact of an API key may not be."""
    if text.startswith(("[", "{")):
        try:
            # Not json.loads(), which accepts NaN: the facts of a run are stored.
            return parse_typed_json(text)
        except InvalidJSON:
            return text
    return parse_text_or_json(text)


def fact_fields(configurations: Sequence[JSONMapping], texts: FactTexts) -> list[FactField]:
    """Return an input for each fact on which a variant of any column depends."""
    values: dict[str, dict[str, None]] = {}
    for configuration in configurations:
        for variants in (configuration.get(CONDITIONAL) or {}).values():
            for variant in variants or ():
                for condition in all_conditions(variant["rules"]):
                    values.setdefault(condition["field"], {}).update(dict.fromkeys(expected_texts(condition)))
        for key in configuration.get(CONTEXT_KEYS) or ():
            values.setdefault(key, {})
    return [
        FactField(name, texts.get(name, ""), tuple(expected)) for name, expected in [*values.items()][:MAX_TRY_FACTS]
    ]


def all_conditions(rules: JSONMapping) -> Iterator[JSONMapping]:
    """Yield the conditions of a group and of the groups in it."""
    for item in rules["conditions"]:
        if "conditions" in item:
            yield from all_conditions(item)
        else:
            yield item


def expected_texts(condition: JSONMapping) -> list[str]:
    value = condition.get("value")
    items = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else json.dumps(item) for item in items if item not in (None, "")]


def chosen_variants(agent: ResolvedAgent) -> list[tuple[str, str]]:
    """Return the label of each field with variants, and the one that a column has."""
    variants = agent.configuration.get(CONDITIONAL) or {}
    chosen = dict(agent.variants)
    return [
        (FIELD_LABELS[field], variant_title(chosen.get(field), len(rows))) for field, rows in variants.items() if rows
    ]
