"""The knowledge bases of an agent in the editor: a checkbox for each, with its options and its filter.

The names of the inputs:

    knowledge                   sent by every page that has the list
    knowledge-base              the key of each selected base
    knowledge-top-<key>         the most passages of a search, or blank
    knowledge-score-<key>       the minimum score of a passage, or blank
    knowledge-key-<key>         the keys of the filter, one input for each condition
    knowledge-operator-<key>    the operators, in the same order
    knowledge-value-<key>       the values, in the same order
    knowledge-search            the words of the search, which is not stored
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.knowledge import NO_BASE_MESSAGE, filter_problem
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.field import get_submitted_list
from agents_app.forms.objects.members import format_text_or_json, is_line, parse_text_or_json
from agents_app.forms.tools.listed_rows import ListedRows, find_listed_keys
from agents_app.registry import Entry, Kind, registry

MAX_UNSELECTED_BASES = 50  # in the list; each takes 4 kB of the page
CONDITION_LABELS = {
    "$eq": "is",
    "$ne": "is not",
    "$contains": "contains",
    "$gt": "more than",
    "$gte": "at least",
    "$lt": "less than",
    "$lte": "at most",
}
EMPTY_CONDITIONS = 1  # inputs for a further condition


@dataclass(frozen=True)
class Condition:
    """A condition of a fixed filter, as its inputs show it."""

    key: str = ""
    operator: str = "$eq"
    value: str = ""


@dataclass(frozen=True)
class BaseRow:
    """A knowledge base in the list. `problem` says why the agent runs without it, if it is selected."""

    key: str
    entry: Entry | None
    is_selected: bool
    top_k: str
    min_score: str
    conditions: list[Condition]
    problem: str
    has_other_filter: bool  # which the inputs cannot show

    @property
    def search_text(self) -> str:
        """The words by which the search finds the base, in lower case."""
        return base_search_text(self.key, self.entry)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.entry.names if self.entry else ()

    @property
    def operators(self) -> list[tuple[str, str]]:
        return [*CONDITION_LABELS.items()]


def build_base_list(value: object, owner_id: str, query: str = "") -> ListedRows[BaseRow]:
    """Return the bases that a value names, and the first of this owner that match a query."""
    selected = value if isinstance(value, dict) else {}
    bases = registry.staff_entries_of(Kind.KNOWLEDGE).items()
    entries = {key: entry for key, entry in bases if entry.is_usable_by(owner_id)}
    listed = find_listed_keys(
        sorted({*entries, *selected}),
        selected,
        query,
        MAX_UNSELECTED_BASES,
        lambda key: base_search_text(key, entries.get(key)),
    )
    rows = [base_row(key, entries.get(key), selected.get(key)) for key in listed.rows]
    return listed.with_rows(rows)


def base_search_text(key: str, entry: Entry | None) -> str:
    """Return the text of a base that a search looks at, in lower case."""
    texts = (key, entry.title, entry.description) if entry else (key,)
    return " ".join(texts).lower()


def base_row(key: str, entry: Entry | None, choice: object) -> BaseRow:
    options = choice if isinstance(choice, dict) else {}
    conditions = simple_conditions(options.get("filter"))
    problem = filter_problem(key, entry, options) if entry else NO_BASE_MESSAGE.format(key=key)
    rows = [*(conditions or []), *([Condition()] * EMPTY_CONDITIONS)]
    score = options.get("minScore")
    return BaseRow(
        key,
        entry,
        choice is not None,
        str(options.get("topK") or ""),
        "" if score is None else format_text_or_json(score),
        rows,
        problem,
        conditions is None,
    )


def simple_conditions(value: object) -> list[Condition] | None:
    """Return the conditions of a filter, or None if it has combinations or values that the inputs cannot show."""
    conditions: list[Condition] = []
    for key, operand in value.items() if isinstance(value, dict) else ():
        operators = operand if isinstance(operand, dict) else {"$eq": operand}
        for operator, item in operators.items():
            if key.startswith("$") or operator not in CONDITION_LABELS or isinstance(item, dict | list):
                return None
            text = format_text_or_json(item)
            if not is_line(text):  # a browser would change it
                return None
            conditions.append(Condition(key, operator, text))
    return conditions


def compose_knowledge(data: FormData, base: JSONValue) -> JSONObject | None:
    """Return the value that a page sent, with the stored options that have no input."""
    stored = base if isinstance(base, dict) else {}
    # The input for a key, which a page without scripts has, may be blank.
    keys = dict.fromkeys(filter(None, get_submitted_list(data, "knowledge-base")))
    value = {key: compose_choice(data, key, stored.get(key) or {}) for key in keys}
    return value or (None if stored else base)  # an empty object stays, as null does


def compose_choice(data: FormData, key: str, before: JSONMapping) -> JSONObject:
    # Only inputs that the page had change anything. A base that is gone or has no keys shows none, and a fixed filter
    # that got lost with the next save would widen the searches of the agent once the base is back.
    choice = dict(before)
    if f"knowledge-top-{key}" in data:
        choice.pop("topK", None)
        if text := str(data[f"knowledge-top-{key}"]).strip():
            choice["topK"] = int(text) if text.isdecimal() and len(text) < 10 else text
    if f"knowledge-score-{key}" in data:
        choice.pop("minScore", None)
        if text := str(data[f"knowledge-score-{key}"]).strip():
            choice["minScore"] = parse_text_or_json(text)
    displayed, posted = simple_conditions(before.get("filter")), [*posted_conditions(data, key)]
    # Not if they are the same: a filter may say `{"key": value}` in place of `{"key": {"$eq": value}}`.
    if f"knowledge-key-{key}" in data and displayed is not None and displayed != posted:
        choice.pop("filter", None)
        if conditions := compose_filter(posted):
            choice["filter"] = conditions
    return choice


def posted_conditions(data: FormData, key: str) -> Iterator[Condition]:
    names = (f"knowledge-{part}-{key}" for part in ("key", "operator", "value"))
    for condition in zip(*(get_submitted_list(data, name) for name in names), strict=False):
        if condition[0]:
            yield Condition(*condition)


def compose_filter(conditions: list[Condition]) -> JSONObject:
    """Return the filter of some conditions. Two of the same key and operator are joined by `$and`."""
    result: JSONObject = {}
    for condition in conditions:
        operand = {condition.operator: parse_text_or_json(condition.value)}
        if condition.key in result and condition.operator in result[condition.key]:
            return {"$and": [{item.key: {item.operator: parse_text_or_json(item.value)}} for item in conditions]}
        result[condition.key] = {**result.get(condition.key, {}), **operand}
    return result
