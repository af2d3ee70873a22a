"""Short summaries of the differences between two snapshots, for one line of a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.configuration.display import variant_facts
from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.configuration.mcp_clients import selected_tools, without_hashes
from agents_app.configuration.references import processor_key
from versions_app.compare.diff import FieldDiff, diff_items, diff_paths, line_counts, values_equal, visible_differences

MAX_NAMED_KEYS = 3  # further keys are counted
MAX_SUMMARY_VALUE_LENGTH = 40  # characters


class FieldSummary(NamedTuple):
    """A changed field in words: the added part, the removed part and other text."""

    label: str
    added: str = ""
    removed: str = ""
    text: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def summarize_changes(before: JSONMapping, after: JSONMapping) -> list[FieldSummary]:
    """Return a summary of each field that differs, in the order of the agent's fields."""
    return [summarize_field(diff) for diff in visible_differences(before, after)]


def summary_line(summaries: Sequence[FieldSummary]) -> str:
    """Return the summaries as one line: `Instructions +12 −3 · Tools +search · Model a → b`."""
    return " · ".join(map(str, summaries)) or "No differences"


def summarize_field(diff: FieldDiff) -> FieldSummary:
    """Return the summary of a changed field."""
    return SUMMARIZERS.get(diff.field, _summarize_object)(FIELD_LABELS[diff.field], diff.before, diff.after)


def summarize_field_names(fields: Sequence[str]) -> list[FieldSummary]:
    """Return summaries of changed fields if only their names are known: the base version was deleted."""
    return [FieldSummary(FIELD_LABELS[field], text="changed") for field in fields if field in FIELD_LABELS]


def _summarize_lines(label: str, before: str | None, after: str | None) -> FieldSummary:
    added, removed = line_counts(before or "", after or "")
    return FieldSummary(label, f"+{added}" if added else "", f"−{removed}" if removed else "")


def _summarize_value(label: str, before: object, after: object) -> FieldSummary:
    return FieldSummary(label, text=f"{_short_value(before)} → {_short_value(after)}")


def _summarize_text(label: str, before: object, after: object) -> FieldSummary:
    if not (before and after):
        return FieldSummary(label, text="added" if after else "removed")
    return FieldSummary(label, text="changed")


def _summarize_keys(label: str, before: Sequence[str] | None, after: Sequence[str] | None) -> FieldSummary:
    kinds = diff_items(before or [], after or [])
    added, removed = ([item.item for item in kinds if item.kind == kind] for kind in ("added", "removed"))
    text = "" if added or removed else "reordered"
    return FieldSummary(label, _signed_keys("+", added), _signed_keys("−", removed), text)


def _summarize_processors(label: str, before: JSONValue, after: JSONValue) -> FieldSummary:
    old, new = ([str(processor_key(item) or "unnamed") for item in side or []] for side in (before, after))
    # A processor may be used twice, which `diff_items` cannot compare. With equal keys, only arguments changed.
    if len(set(old)) == len(old) and len(set(new)) == len(new) and old != new:
        return _summarize_keys(label, old, new)
    return FieldSummary(label, text="changed")


def _summarize_model(label: str, before: JSONValue, after: JSONValue) -> FieldSummary:
    before, after = before or {}, after or {}
    if not before:  # the first version
        return FieldSummary(label, text=f"{after.get('provider', '–')}/{after.get('name', '–')}")
    if before.get("provider") != after.get("provider"):
        old, new = (f"{model.get('provider', '–')}/{model.get('name', '–')}" for model in (before, after))
        return _summarize_value(label, old, new)
    if before.get("name") != after.get("name"):
        return _summarize_value(label, before.get("name"), after.get("name"))
    return _summarize_object(label, before, after)


def _summarize_object(label: str, before: JSONValue, after: JSONValue) -> FieldSummary:
    before, after = before or {}, after or {}
    added, removed = [key for key in after if key not in before], [key for key in before if key not in after]
    changed = sorted(key for key in before if key in after and not values_equal(before[key], after[key]))
    text = f"{_joined_keys(changed)} changed" if changed else ""
    if len(changed) == 1:
        (key,) = changed
        differences = [*islice(diff_paths(before[key], after[key], key), 2)]
        if len(differences) == 1 and differences[0].kind == "changed":
            path, _, old, new = map(_short_value, differences[0])
            text = f"{path} {old} → {new}"
    return FieldSummary(label, _signed_keys("+", added), _signed_keys("−", removed), text)


def _summarize_mcp_tools(label: str, before: JSONValue, after: JSONValue) -> FieldSummary:
    """Name the tools whose new definition was accepted, if nothing else changed: a hash says nothing to people."""
    hashes = [{tool.key: tool.hash for tool in selected_tools(side)} for side in (before, after)]
    accepted = [key for key, text in hashes[1].items() if hashes[0].get(key, text) != text]
    if accepted and values_equal(without_hashes(before), without_hashes(after)):
        return FieldSummary(label, text=f"new definition of {_joined_keys(accepted)}")
    return _summarize_object(label, before, after)


def _summarize_variables(label: str, before: JSONValue, after: JSONValue) -> FieldSummary:
    """Summarize the declarations by variable: added, removed and changed."""
    old, new = before or {}, after or {}
    sides = [side.get("properties") or {} for side in (old, new)]
    if values_equal(*sides):
        return FieldSummary(label, text="changed")
    return _summarize_object(label, *sides)


def _summarize_durable(label: str, before: object, after: object) -> FieldSummary:
    old, new = (
        f"at most {value['maxSteps']} steps" if isinstance(value, dict) else value for value in (before, after)
    )
    return _summarize_value(label, old, new)


def _summarize_memory(label: str, before: JSONValue, after: JSONValue) -> FieldSummary:
    """Summarize by option, or by name where a side is registered or nothing."""
    if isinstance(before, dict) and isinstance(after, dict):
        differences = [*diff_paths(before, after)]
        if len(differences) == 1:
            path, _, old, new = map(_short_value, differences[0])
            return FieldSummary(label, text=f"{path} {old} → {new}")
        return FieldSummary(label, text=f"{_joined_keys([difference.path for difference in differences])} changed")
    old, new = ("options of this agent" if isinstance(value, dict) else value for value in (before, after))
    return _summarize_value(label, old, new)


def _summarize_variants(label: str, before: JSONValue, after: JSONValue) -> FieldSummary:
    """Summarize by variant: the added, removed and changed ones of each field."""
    old, new = (dict(variant_facts(value or {})) for value in (before, after))
    added = [name for name in new if name not in old]
    removed = [name for name in old if name not in new]
    changed = [name for name in new if name in old and new[name] != old[name]]
    text = ""
    if len(changed) == 1:
        text = f"{changed[0]}: {_short_value(old[changed[0]])} → {_short_value(new[changed[0]])}"
    # Variants may also differ in members that the words leave out.
    elif changed or not (added or removed):
        text = f"{_joined_keys(changed)} changed".strip()
    return FieldSummary(label, _signed_keys("+", added), _signed_keys("−", removed), text)


def _signed_keys(sign: str, keys: Sequence[str]) -> str:
    names = [f"{sign}{_short_value(key)}" for key in keys[:MAX_NAMED_KEYS]]
    return " ".join([*names, f"{sign}{len(keys) - MAX_NAMED_KEYS} more"] if len(keys) > MAX_NAMED_KEYS else names)


def _joined_keys(keys: Sequence[str]) -> str:
    names = [_short_value(key) for key in keys[:MAX_NAMED_KEYS]]
    return ", ".join([*names, f"{len(keys) - MAX_NAMED_KEYS} more"] if len(keys) > MAX_NAMED_KEYS else names)


def _short_value(value: object) -> str:
    """Return a value on one line, truncated to MAX_SUMMARY_VALUE_LENGTH."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "{…}" if isinstance(value, dict) else "[…]"
    text = " ".join(str(value).split()) or "empty"
    return text if len(text) <= MAX_SUMMARY_VALUE_LENGTH else f"{text[: MAX_SUMMARY_VALUE_LENGTH - 1]}…"


SUMMARIZERS: dict[str, Callable[[str, Any, Any], FieldSummary]] = {
    "name": _summarize_value,
    "description": _summarize_text,
    "instructions": _summarize_lines,
    "requestContextSchema": _summarize_variables,
    "model": _summarize_model,
    "mcpClients": _summarize_mcp_tools,
    "memory": _summarize_memory,
    "conditional": _summarize_variants,
    "contextKeys": _summarize_keys,
    "durable": _summarize_durable,
    "inputProcessors": _summarize_processors,
    "outputProcessors": _summarize_processors,
    **dict.fromkeys(("tools", "workflows", "agents", "integrationTools"), _summarize_keys),
}
