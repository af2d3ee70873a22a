"""Conversion between an agent's configuration and the values of the editor's fields."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents_app.forms.fields import JSONNumberField, ScorersField

# The wire names of model settings with a form field of their own. Other settings are edited as JSON.
MODEL_SETTINGS = {"temperature": "temperature", "top_p": "topP", "max_tokens": "maxTokens"}


def pluralize(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def to_form_values(base: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the form fields for a configuration."""
    model = dict(base["model"])
    values = {"provider": model.pop("provider", ""), "model_name": model.pop("name", "")}
    for name, wire in MODEL_SETTINGS.items():
        if JSONNumberField.is_number(model.get(wire)):
            values[name] = json.dumps(model.pop(wire))
    return {**base, **values, "model_rest": model}


def keep_stored_order(stored: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Return the chosen keys in their stored order, then new ones. A browser sends them in the order of the page."""
    unique = dict.fromkeys(chosen)
    return [key for key in stored if key in unique] + [key for key in unique if key not in stored]


def apply_sampling(stored: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """Return a stored scorer with the chosen sampling and its other keys unchanged."""
    old, new = stored.get("sampling") or {}, chosen.get("sampling") or {}
    if all(old.get(name) == value for name, value in new.items()) and bool(old) == bool(new):
        return stored
    return {**{name: value for name, value in stored.items() if name != "sampling"}, **chosen}


def sampling_inputs(choice: Any) -> tuple[str, str]:
    """Return the values of the two sampling fields, for a stored scorer or for submitted texts."""
    if isinstance(choice, tuple):
        return choice
    sampling = (choice or {}).get("sampling") or {}
    amount = sampling.get(ScorersField.AMOUNTS.get(str(sampling.get("type")), ""))
    return sampling.get("type", ""), "" if amount is None else json.dumps(amount)
