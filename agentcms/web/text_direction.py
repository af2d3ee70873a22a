"""The direction of texts of people: in inputs, and where markup cannot isolate them, as in options of a select."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from django import forms

ISOLATE, END_OF_ISOLATE = "\u2068", "\u2069"
# They embed, override or isolate. An unclosed one would turn what follows the text.
DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


def isolate_text(text: str) -> str:
    """Return a text that does not change the direction of what is written beside it."""
    plain = DIRECTION_MARKS.sub("", text)
    has_direction = any(unicodedata.bidirectional(character) in RIGHT_TO_LEFT for character in plain)
    return f"{ISOLATE}{plain}{END_OF_ISOLATE}" if has_direction else plain


class PersonTextField(forms.CharField):
    """A text of a person. The browser finds the direction of what is typed."""

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {**super().widget_attrs(widget), "dir": "auto"}
