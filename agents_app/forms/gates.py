"""The form field of release gates."""

from __future__ import annotations

from django import forms


class BypassReasonField(forms.CharField):
    """Why a manager publishes a version that misses a release gate. Without a reason, the gate holds it back."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            min_length=10,
            max_length=450,  # the column has 500, with words before the reason
            label="Reason to publish without the gate",
            widget=forms.Textarea(attrs={"rows": 2, "dir": "auto"}),
            help_text="At least 10 characters. Shown in the live history. Without a reason, nothing is published.",
        )
