"""The memory of the submitted texts of its inputs. Members without an input stay as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from django.core.exceptions import ValidationError

from agentcms.wire.json_types import JSONObject
from agents_app.forms.memory.inputs import ALL_INPUTS, GROUPS, INPUT_PREFIX, texts_of, value_at
from agents_app.forms.objects.members import InputError, path_error


def compose_memory_options(stored: object, texts: Mapping[str, str], prefix: str = INPUT_PREFIX) -> JSONObject:
    """Return the memory of these texts. Raise ValidationError with an error for each invalid input.

    A part that is switched off loses its options. An option whose text is that of the stored value stays as it is.
    """
    # A copy: the form compares the result with the stored memory.
    memory: JSONObject = deepcopy(stored) if isinstance(stored, dict) else {}
    stored_texts = texts_of(memory)
    errors: list[ValidationError] = []
    for group in GROUPS:
        if group.switch:
            set_switch(memory, group.switch.path, texts.get(group.switch.path, ""), stored_texts[group.switch.path])
            if not texts.get(group.switch.path):
                continue
        for item in group.inputs:
            text = texts.get(item.path, "")
            if text == item.as_sent(stored_texts[item.path]):
                continue
            try:
                set_at(memory, item.path, item.parse(text) if text.strip() else None)
            except ValidationError as error:
                errors += InputError.build(item.label, error, f"{prefix}{item.path}")
    if errors:
        raise ValidationError(errors)
    return memory or {"options": {}}  # an empty object is not valid


def memory_error(path: str, message: str, prefix: str = INPUT_PREFIX) -> ValidationError:
    """Return the error for an issue at a path of a memory: that of an input if there is one for the path."""
    labels = {item.path: item.label for item in ALL_INPUTS}
    if path in labels:
        return InputError(f"{labels[path]}: {message}", f"{prefix}{path}:0", message)
    return path_error(path, message)


def set_switch(memory: JSONObject, path: str, text: str, stored_text: str) -> None:
    """Switch a part of the options on or off, if that changes it."""
    if text == stored_text:
        return
    value = value_at(memory, path)
    if not text:
        set_at(memory, path, None)
    elif isinstance(value, dict):
        set_at(memory, path, {**value, "enabled": True})
    else:
        set_at(memory, path, True)


def set_at(memory: JSONObject, path: str, value: object) -> None:
    """Set the value at a path, or remove it for None. A part that is only switched on becomes an object."""
    *parents, last = path.split(".")
    for name in parents:
        if value is None and not isinstance(memory.get(name), dict):
            return
        if not isinstance(memory.get(name), dict):
            memory[name] = {}
        memory = memory[name]
    if value is None:
        memory.pop(last, None)
    else:
        memory[last] = value
