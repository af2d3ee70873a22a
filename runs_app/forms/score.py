"""The form in which a person scores an answer."""

from __future__ import annotations

from django import forms

from agentcms.web.text_direction import PersonTextField

PERSON_SCORER = "person"  # the key of scores by people


class ScoreForm(forms.Form):
    """A score from 0 to 1 with a comment."""

    score = forms.FloatField(
        label="Score",
        min_value=0,
        max_value=1,
        required=False,
        help_text="From 0 (bad) to 1 (good).",
        widget=forms.NumberInput(attrs={"step": "0.05", "min": "0", "max": "1"}),
        error_messages={
            "invalid": "Enter a number from 0 to 1.",
            "min_value": "Enter a number from 0 to 1.",
            "max_value": "Enter a number from 0 to 1.",
        },
    )
    comment = PersonTextField(
        label="Comment", max_length=5000, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )

    def clean(self) -> dict[str, object]:
        values = super().clean() or {}
        if not self.errors and values.get("score") is None and not values.get("comment"):
            self.add_error("score", "Enter a score or a comment.")
        return values
