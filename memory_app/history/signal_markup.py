"""Signals and the text that the model reads for them.

    <user name="Devin" from="slack">Can we simplify the API surface?</user>
    <system-reminder source="github" pr="123">User X has left a new comment.</system-reminder>

A signal of the type `user` without attributes is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.schema import ConfigError, Issue

TAG_BY_TYPE = {"user-message": "user", "reactive": "system-reminder"}  # other types are their own tags
USER_TAG = "user"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
MAX_SIGNAL_NAME_LENGTH = 100
NAME_MESSAGE = (
    f"A name has 1 to {MAX_SIGNAL_NAME_LENGTH} letters, digits, '_', '.' and '-', and begins with a letter or '_'."
)
VALUE_MESSAGE = "This must be a text, a number, true, false or null."

AttributeValue = str | int | float | bool | None


@dataclass(frozen=True)
class Signal:
    """Something that happened and that an agent should hear of in a conversation."""

    type: str
    contents: str
    id: str = ""  # blank for a new one; a repeat with the same ID is recognized
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    metadata: JSONMapping | None = None
    tag_name: str = ""  # blank for the tag of the type

    @property
    def tag(self) -> str:
        """The tag of the signal in the text that the model reads."""
        return self.tag_name or TAG_BY_TYPE.get(self.type, self.type)

    @property
    def is_from_user(self) -> bool:
        """Return True for the words of a person."""
        return self.tag == USER_TAG


def validate_signal(signal: Signal, path: str = "signal") -> None:
    """Raise ConfigError with the path of each name or value that the markup cannot have."""
    names = [("type", signal.type), *([("tagName", signal.tag_name)] if signal.tag_name else [])]
    issues = [Issue(f"{path}.{member}", NAME_MESSAGE) for member, name in names if not is_name(name)]
    for name, value in signal.attributes.items():
        if not is_name(name):
            issues.append(Issue(f"{path}.attributes.{name[:MAX_SIGNAL_NAME_LENGTH]}", NAME_MESSAGE))
        elif not isinstance(value, AttributeValue):
            issues.append(Issue(f"{path}.attributes.{name}", VALUE_MESSAGE))
    if issues:
        raise ConfigError(issues)


def is_name(name: str) -> bool:
    """Return True for a valid name of a tag or an attribute."""
    return len(name) <= MAX_SIGNAL_NAME_LENGTH and NAME.fullmatch(name) is not None


def signal_text(signal: Signal) -> str:
    """Return what the model reads for a valid signal."""
    attributes = {name: value for name, value in signal.attributes.items() if value is not None}
    text = signal.contents.strip()
    if signal.tag == USER_TAG and not attributes:
        return text
    start = signal.tag + "".join(f' {name}="{escape_attribute(value)}"' for name, value in attributes.items())
    return f"<{start}>{escape(text)}</{signal.tag}>" if text else f"<{start} />"


def escape_attribute(value: AttributeValue) -> str:
    """Return the value of an attribute as markup."""
    return escape(attribute_text(value)).replace('"', "&quot;")


def attribute_text(value: AttributeValue) -> str:
    """Return the value of an attribute as text. Numbers and booleans are written as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
