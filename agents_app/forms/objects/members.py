"""Members of a JSON object as inputs of a form: a text for each value, the value of each text, and their errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError

from agentcms.wire.canonical import json_equal, normalize
from agentcms.wire.json_parser import InvalidJSON, parse_typed_json
from agentcms.wire.json_types import JSONValue

MAX_MEMBER_NAME_LENGTH = 256


def normalize_lines(text: str) -> str:
    """Return a text with the line ends that a textarea has."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def normalize_line(text: str) -> str:
    """Return a text as an input of one line has it."""
    return text.replace("\r", "").replace("\n", "")


def parse_json(text: str) -> object:
    """Return the value of a JSON text. Raise ValidationError with all faults."""
    try:
        return parse_typed_json(text)
    except InvalidJSON as error:
        faults = [f"{fault.field}: {fault.message}" if fault.field else fault.message for fault in error.faults]
        raise ValidationError(faults, code="invalid") from error


def parse_number(text: str) -> object:
    """Return a number with all its digits. Raise ValidationError for any other text."""
    try:
        number = parse_json(text.strip())
    except ValidationError:
        number = None
    if not is_number(number):
        raise ValidationError("This must be a number, such as 0.7.", code="invalid")
    return number


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_text_or_json(text: str) -> object:
    """Return the value of an input: numbers, true, false, null and quoted texts as in JSON, else the text."""
    try:
        # As strictly as the API: no database stores NaN or half of a surrogate pair as JSON.
        value = parse_typed_json(text)
    except InvalidJSON:
        return text
    return text if isinstance(value, dict | list) else value


def format_text_or_json(value: object) -> str:
    """Return the text for which `parse_text_or_json` gives the value back. A text such as "1" needs its quotes."""
    return value if isinstance(value, str) and parse_text_or_json(value) == value else json.dumps(value)


def parse_lines(text: str) -> list[str]:
    return [line for line in normalize_lines(text).split("\n") if line]


def parse_tags(text: str) -> list[str]:
    """Return the tags of a text that separates them with commas."""
    return list(dict.fromkeys(tag for part in text.split(",") if (tag := part.strip())))


def format_json(value: object) -> str:
    return json.dumps(sort_members(normalize(value)), indent=2, ensure_ascii=False)


def sort_members(value: object) -> object:
    """Return a value with the members of its objects by name, as in versions: each database has another order.

    The properties of a JSON Schema keep theirs, because models write answers in it.
    """
    if isinstance(value, list):
        return [sort_members(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: sort_members(value[name]) for name in sorted(value)}
    properties = value.get("properties")
    if isinstance(properties, dict):
        members["properties"] = {name: sort_members(item) for name, item in properties.items()}
    return members


def _join(separator: str) -> Callable[[Any], str | None]:
    def format_list(value: JSONValue) -> str | None:
        is_list = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
        return separator.join(value) if is_list else None

    return format_list


# Of each kind of input: the text of a value, or None if the kind has no text for it, and the value of a text.
FORMATS: Mapping[str, tuple[Callable[[Any], str | None], Callable[[str], Any]]] = {
    "text": (lambda value: value if isinstance(value, str) else None, normalize_lines),
    "number": (lambda value: format_json(value) if is_number(value) else None, parse_number),
    "lines": (_join("\n"), parse_lines),
    "tags": (_join(", "), parse_tags),
    "choice": (format_json, parse_json),
    "json": (format_json, parse_json),
    "true": (lambda value: "" if value is True else None, lambda text: True),
    "false": (lambda value: "" if value is False else None, lambda text: False),
}


def format_input_value(kind: str, value: object) -> str | None:
    """Return the text of a value in an input of this kind, or None if the input would not give the value back."""
    format_text, _ = FORMATS[kind]
    text = format_text(value)
    if text is None or text != normalize_lines(text):
        return None
    try:
        return text if json_equal(parse_input_value(kind, text), value) else None
    except ValidationError:
        return None


def parse_input_value(kind: str, text: str) -> object:
    """Return the value of a text in an input of this kind. Raise ValidationError."""
    _, parse_text = FORMATS[kind]
    return parse_text(text)


def is_line(text: str) -> bool:
    """Return whether a text has no line end, which a browser would change."""
    return text == normalize_line(text)


def is_plain_name(name: str) -> bool:
    """Return whether an input of one line gives this name back."""
    return 0 < len(name) <= MAX_MEMBER_NAME_LENGTH and is_line(name)


@dataclass(frozen=True)
class Member:
    """A member of an object that has an input of its own."""

    name: str
    label: str
    kind: str = "number"
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()  # of kind "choice": JSON text and label
    required: bool = False
    rows: int = 1  # of the box of a text; a box of several rows is as wide as the form

    def format(self, value: object) -> str | None:
        """Return the text of a value, or None if the input cannot show it. A blank text would remove the member."""
        text = format_input_value(self.kind, value)
        is_choice = not self.choices or any(text == choice for choice, _ in self.choices)
        return text if text and text.strip() and is_choice else None

    def parse(self, text: str) -> JSONValue:
        """Return the value of a text. Raise ValidationError."""
        return parse_input_value(self.kind, text)


class InputError(ValidationError):
    """An error of one input of a field.

    `target` is the name of the input, a colon, and the position of its row among the rows with a name, or 0.
    """

    def __init__(self, message: str, target: str, text: str = "") -> None:
        super().__init__(message, code="invalid")
        self.target = target
        self.text = text or message  # without the label, for the place below the input

    @classmethod
    def build(cls, label: str, error: ValidationError, name: str, position: int = 0) -> Iterator[InputError]:
        """Yield an error for each message of an input, which begins with its label in a list of all errors."""
        for message in error.messages:
            yield cls(f"{label}: {message}", f"{name}:{position}", message)

    def labelled(self, label: str) -> InputError:
        """Return the error with a further label."""
        return InputError(f"{label}: {self.messages[0]}", self.target, self.text)


def path_error(path: str, message: str) -> ValidationError:
    """Return the error for an issue that has no input of its own, with the path of what it is about."""
    return ValidationError(f"{path}: {message}" if path else message, code="invalid")


def label_errors(label: str, error: ValidationError) -> Iterator[ValidationError]:
    """Yield the errors with a label before each message. Those of inputs stay with their input."""
    for item in error.error_list:
        if isinstance(item, InputError):
            yield item.labelled(label)
        else:
            yield ValidationError(f"{label}: {item.messages[0]}", code="invalid")


def texts_at(errors: Iterable[Any], name: str) -> str:
    """Return the messages of an input, or a blank text."""
    return texts_by_target(errors).get(f"{name}:0", "")


def texts_by_target(errors: Iterable[Any]) -> dict[str, str]:
    """Return the messages of each input with errors, by its target."""
    texts: dict[str, list[str]] = {}
    for error in errors:
        if target := getattr(error, "target", ""):
            texts.setdefault(target, []).append(error.text)
    return {target: " ".join(messages) for target, messages in texts.items()}
