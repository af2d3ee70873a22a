"""Forms of what several people may change at the same time."""

from __future__ import annotations

from typing import cast

from django import forms
from django.http import QueryDict

from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping

CHANGED_MESSAGE = (
    "Nothing was saved: somebody else has changed this since you opened the page. Save again to replace what they "
    "entered, or open the page again to see it."
)


class ConcurrentEditForm(forms.Form):
    """A form that replaces only values which its user has seen.

    Its page sends the mark of the values with which it was rendered. A blank mark is any.
    """

    seen = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    mark = ""

    def mark_values(self, values: JSONMapping) -> None:
        """Mark the stored values, before the form changes them."""
        self.mark = self.initial["seen"] = sha256_hex(canonical(dict(values)))

    def is_outdated(self) -> bool:
        """Return whether the stored values are not those that the user has seen. The form must be cleaned.

        A form of something new has no mark, and nothing that could have changed.
        """
        return bool(self.mark) and self.cleaned_data.get("seen", "") not in ("", self.mark)

    def ask_to_replace(self, message: str = CHANGED_MESSAGE, field: str | None = None) -> None:
        """Report that somebody else has changed the values. The form, sent again, replaces them."""
        data = cast("QueryDict", self.data).copy()
        data["seen"] = self.mark
        self.data = data
        self.add_error(field, message)
