"""Forms of the playground."""

from __future__ import annotations

from django import forms
from django.conf import settings

from agentcms.web.text_direction import PersonTextField
from agents_app.forms.fields import RawTextField

MAX_SAVED_INPUTS = 50  # of one user for one agent
REQUIRED_MESSAGE = "Enter a message."


class MessageForm(forms.Form):
    """Form of a message. White space is preserved."""

    message = RawTextField(
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "placeholder": "Type a message",
                "data-search": True,
            }
        ),
        error_messages={"required": REQUIRED_MESSAGE},
    )

    def clean_message(self) -> str:
        text: str = self.cleaned_data["message"]
        if len(text.encode()) > settings.RUN_MAX_INPUT:
            raise forms.ValidationError(f"A message must not exceed {settings.RUN_MAX_INPUT // 1024:,} KB.")
        if not text.strip():
            raise forms.ValidationError(REQUIRED_MESSAGE)
        return text


class SavedInputForm(MessageForm):
    """Form of a saved input: a message with a name."""

    input_name = PersonTextField(
        label="Name", max_length=100, error_messages={"required": "Enter a name for the input."}
    )
