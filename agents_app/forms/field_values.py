"""An agent's configuration in the pieces in which the editor shows it, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents_app.forms.fields import JSONNumberField, ScorersField

# Settings of a model that have a field of their own, by form field; the rest is JSON.
MODEL_SETTINGS = {"temperature": "temperature", "top_p": "topP", "max_tokens": "maxTokens"}


def pluralize(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def to_form_values(base: dict[str, Any]) -> dict[str, Any]:
    """A configuration as the form's fields show it."""
    model = dict(base["model"])
    pieces = {"provider": model.pop("provider", ""), "model_name": model.pop("name", "")}
    for name, wire in MODEL_SETTINGS.items():
        if JSONNumberField.takes(model.get(wire)):
            pieces[name] = json.dumps(model.pop(wire))
    return {**base, **pieces, "model_rest": model}


def keep_stored_order(stored: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """The chosen keys, those that were there before in their order; boxes come in the order of the page."""
    wanted = dict.fromkeys(chosen)
    return [key for key in stored if key in wanted] + [key for key in wanted if key not in stored]


def apply_sampling(stored: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """A stored scorer, sampled as chosen; whatever else stands in it stays."""
    before, now = stored.get("sampling") or {}, chosen.get("sampling") or {}
    if all(before.get(name) == value for name, value in now.items()) and bool(before) == bool(now):
        return stored
    return {**{name: value for name, value in stored.items() if name != "sampling"}, **chosen}


def sampling_inputs(choice: Any) -> tuple[str, str]:
    """How often a scorer scores, as its two fields show it; `choice` is what is stored or what was sent."""
    if isinstance(choice, tuple):
        return choice
    sampling = (choice or {}).get("sampling") or {}
    amount = sampling.get(ScorersField.AMOUNTS.get(str(sampling.get("type")), ""))
    return sampling.get("type", ""), "" if amount is None else json.dumps(amount)
