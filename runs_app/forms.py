"""The forms of Try it."""

from __future__ import annotations

from django import forms
from django.conf import settings

from agents_app.forms.fields import RawTextField

MAX_SAVED_INPUTS = 50  # that one person keeps for one agent


class MessageForm(forms.Form):
    """What is asked. Line breaks and blanks stay as they were typed."""

    message = RawTextField(
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "placeholder": "Ask what its users would ask",
                "data-search": True,
            }
        ),
        error_messages={"required": "Write a message first."},
    )

    def clean_message(self) -> str:
        text: str = self.cleaned_data["message"]
        if len(text.encode()) > settings.RUN_MAX_INPUT:
            raise forms.ValidationError(f"A message has at most {settings.RUN_MAX_INPUT // 1024:,} KB.")
        if not text.strip():
            raise forms.ValidationError("Write a message first.")
        return text


class SavedInputForm(MessageForm):
    """A message to be kept under a name."""

    input_name = forms.CharField(
        label="Name", max_length=100, error_messages={"required": "Give the input a name to find it by."}
    )
