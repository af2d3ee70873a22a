"""The upload form of an import."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile

from versions_app.exchange.file_format import file_format_fault


class UploadForm(forms.Form):
    """The file to check."""

    file = forms.FileField(
        label="Agents file",
        widget=forms.FileInput(attrs={"accept": ".jsonl,.ndjson,application/x-ndjson"}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )

    def __init__(self, *args: Any, was_too_large: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.was_too_large = was_too_large
        self.fields[
            "file"
        ].help_text = f"JSON Lines as written by an export: one JSON object per line. At most {self.max_size}."

    @property
    def max_size(self) -> str:
        return f"{settings.IMPORT_MAX_BYTES // 1024**2} MB"

    def clean_file(self) -> UploadedFile[bytes]:
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if fault := file_format_fault(file):
            raise ValidationError(fault)
        return file

    def clean(self) -> None:
        if self.was_too_large:
            # The file was not received, so its field says that it is required.
            self.errors.pop("file", None)
            raise ValidationError({"file": f"The file is larger than {self.max_size}. Split it into several files."})
