"""Lists of keys or tags in one line: separated by commas, and in quotes where one has a comma itself."""

from __future__ import annotations

import re
from typing import Any

from django.core.validators import ProhibitNullCharactersValidator

from agentcms.web.text_direction import PersonTextField

_PART = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|\Z)')


class KeysField(PersonTextField):
    """Keys, separated by commas."""

    def prepare_value(self, value: object) -> Any:
        return join_keys(value) if isinstance(value, list) else value

    def to_python(self, value: object) -> Any:
        text = super().to_python(value) or ""
        # The validator of the field would search the representation of the list, where a NUL is an escape sequence.
        ProhibitNullCharactersValidator()(text)
        return split_keys(text)


def join_keys(keys: list[str]) -> str:
    """Return keys as a text for which `split_keys` gives them back."""
    return ", ".join('"{}"'.format(key.replace('"', '""')) if needs_quotes(key) else key for key in keys)


def needs_quotes(key: str) -> bool:
    return "," in key or key.startswith('"') or key != key.strip()


def split_keys(text: str) -> list[str]:
    """Return the keys of a text. One in quotes may have commas, and its own quotes twice."""
    keys = [quoted.replace('""', '"') or plain.strip() for quoted, plain in _PART.findall(text)]
    return [key for key in keys if key]
