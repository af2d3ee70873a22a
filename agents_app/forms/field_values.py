"""Conversion between an agent's configuration and the values of the editor's fields."""

from __future__ import annotations

import json

from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.forms.fields import ScorersField
from agents_app.forms.memory.inputs import kind_of, texts_of
from agents_app.forms.objects.members import format_input_value

# The wire names of model settings with a form field of their own.
MODEL_SETTINGS = {"temperature": "temperature", "top_p": "topP", "max_tokens": "maxTokens"}
DURABLE_MODES = (("", "As the settings of the server say"), ("yes", "Yes"), ("no", "No"))


def to_form_values(base: JSONObject) -> JSONObject:
    """Return the values of the form fields for a configuration."""
    model = dict(base["model"] or {})
    values = {"provider": model.pop("provider", ""), "model_name": model.pop("name", "")}
    for name, wire in MODEL_SETTINGS.items():
        if (text := format_input_value("number", model.get(wire))) is not None:
            values[name] = text
            del model[wire]
    durable = base["durable"]
    if durable is not None:
        values["durable_mode"] = "no" if durable is False else "yes"
    if isinstance(durable, dict):
        values["durable_steps"] = format_input_value("number", durable["maxSteps"])
    memory = base["memory"]
    values |= {"memory_kind": kind_of(memory), "memory": memory if isinstance(memory, str) else None}
    return {**base, **values, "model_rest": model, "memory_options": texts_of(memory)}


def apply_sampling(stored: JSONObject, chosen: JSONObject) -> JSONObject:
    """Return a stored scorer with the chosen sampling and its other keys unchanged."""
    old, new = stored.get("sampling") or {}, chosen.get("sampling") or {}
    if all(old.get(name) == value for name, value in new.items()) and bool(old) == bool(new):
        return stored
    others = {name: value for name, value in old.items() if name not in (*ScorersField.AMOUNTS.values(), "type")}
    sampling = {"sampling": {**others, **new}} if new else {}
    return {**{name: value for name, value in stored.items() if name != "sampling"}, **sampling}


def sampling_inputs(choice: JSONValue) -> tuple[str, str]:
    """Return the values of the two sampling fields, for a stored scorer or for submitted texts."""
    if isinstance(choice, tuple):
        return choice
    sampling = (choice or {}).get("sampling") or {}
    amount = sampling.get(ScorersField.AMOUNTS.get(str(sampling.get("type")), ""))
    return sampling.get("type", ""), "" if amount is None else json.dumps(amount)
