"""What an import asks."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError


class UploadForm(forms.Form):
    """The file to check."""

    file = forms.FileField(
        label="File of agents",
        widget=forms.FileInput(attrs={"accept": ".jsonl,.ndjson,application/x-ndjson"}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )

    def __init__(self, *args: Any, was_too_large: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.was_too_large = was_too_large
        self.fields["file"].help_text = f"One JSON object on a line, as an export writes them. At most {self.most}."

    @property
    def most(self) -> str:
        return f"{settings.IMPORT_MAX_BYTES // 1024**2} MB"

    def clean(self) -> None:
        if self.was_too_large:
            self.errors.pop("file", None)
            raise ValidationError({"file": f"The file is larger than {self.most}. Split it into several."})
