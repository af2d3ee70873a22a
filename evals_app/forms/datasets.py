"""The forms of datasets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from agentcms.web.concurrent_edits import ConcurrentEditForm
from agentcms.web.text_direction import PersonTextField
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject
from agentcms.wire.names import to_wire
from agents_app.configuration.schema import ConfigError
from agents_app.forms.fields import OwnerField
from agents_app.forms.form_data import FormData
from evals_app.datasets.creation import create_dataset
from evals_app.datasets.schema import parse_dataset
from evals_app.datasets.values import edited_value, text_of_json
from evals_app.exchange.formats import find_format
from evals_app.forms.key_lists import KeysField
from evals_app.models import Dataset, ItemVersion


class ItemFileForm(forms.Form):
    """A file with items."""

    file = forms.FileField(
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.json,.jsonl,.ndjson"}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )

    def __init__(self, *args: Any, was_too_large: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.was_too_large = was_too_large
        self.max_size = f"{settings.IMPORT_MAX_BYTES // 1024**2} MB"
        self.fields["file"].help_text = f"CSV, a JSON array or JSON Lines, in UTF-8. At most {self.max_size}."

    def clean(self) -> dict[str, Any]:
        if self.was_too_large:
            # The upload handler skips a file that is too large, so that the field says that none was chosen.
            self.errors.pop("file", None)
            raise ValidationError({"file": f"The file is larger than {self.max_size}. Split it into several files."})
        values = super().clean() or {}
        if file := values.get("file"):
            values["format"] = find_format(file.name, file.content_type or "")
            if values["format"] is None:
                raise ValidationError({"file": "The name must end with .csv, .json or .jsonl."})
        return values


class JSONTextField(forms.CharField):
    """A JSON value as text. Blank is None."""

    widget = forms.Textarea(attrs={"rows": 4, "class": "code-input", "spellcheck": "false"})

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, **options)

    def prepare_value(self, value: object) -> Any:
        # A text is what a person entered. It is displayed again with its errors.
        return value if isinstance(value, str) else text_of_json(value)

    def to_python(self, value: object) -> Any:
        text = super().to_python(value)
        try:
            # Not `json.loads`: NaN, a key that occurs twice and deep nesting are errors, as in the API.
            return parse_strict_json(text.encode()) if text else None
        except InvalidJSON as error:
            raise ValidationError(str(error)) from None


class ReportingForm(forms.Form):
    """A form whose values are checked by the schemas of the API."""

    field_names: ClassVar[Mapping[str, str]] = {}  # of wire names; others are the snake case of theirs

    def add_issues(self, error: ConfigError) -> None:
        """Add the issues of a body to their fields, with the path of what is inside of one."""
        for issue in error.issues:
            wire = re.split(r"[.\[]", issue.field)[0]
            name = self.field_names.get(wire, re.sub(r"([A-Z])", r"_\1", wire).lower())
            text = issue.message if issue.field == wire else f"{issue.field}: {issue.message}"
            self.add_error(name if name in self.fields else None, text)


class NewDatasetForm(ReportingForm):
    """The name and the team of a new dataset."""

    name = PersonTextField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    owner_id = OwnerField(
        error_messages={"invalid_choice": "You cannot create datasets for this team. Choose one of your teams."}
    )

    def __init__(self, data: Mapping[str, Any] | None, owners: Sequence[str]) -> None:
        super().__init__(data, auto_id="new_%s")
        self.fields["owner_id"].set_owners(owners)  # type: ignore[attr-defined]

    def save(self) -> Dataset | None:
        """Create the dataset of a valid form. Return None, with the errors in the form, if its schema has issues."""
        try:
            columns = parse_dataset({"name": self.cleaned_data["name"]})
        except ConfigError as error:
            self.add_issues(error)
            return None
        return create_dataset({**columns, "owner_id": self.cleaned_data["owner_id"]})


class DatasetForm(ConcurrentEditForm, ReportingForm):
    """The settings of a dataset."""

    field_names: ClassVar = {"scorerIds": "scorer_keys"}

    name = PersonTextField(max_length=200)
    description = PersonTextField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    target_ids = KeysField(required=False, label="Agents", help_text="The IDs of the agents that the dataset is for.")
    scorer_keys = KeysField(required=False, label="Scorers", help_text="Used by experiments that name none.")
    tags = KeysField(required=False, help_text="Separated by commas. A tag with a comma is in quotes.")
    input_schema = JSONTextField(help_text="A JSON Schema that every input must fit.")
    ground_truth_schema = JSONTextField(help_text="A JSON Schema that every ground truth must fit.")
    request_context_schema = JSONTextField(help_text="A JSON Schema that every request context must fit.")

    def __init__(self, data: FormData | None, dataset: Dataset) -> None:
        initial = {name: getattr(dataset, name) for name in self.base_fields if name != "seen"}
        super().__init__(data, initial=initial)
        self.mark_values(initial)

    def clean(self) -> None:
        if self.is_outdated():
            self.ask_to_replace()

    @property
    def body(self) -> JSONObject:
        """The valid values, by wire name."""
        values = {to_wire(name): value for name, value in self.cleaned_data.items() if name != "seen"}
        values["scorerIds"] = values.pop("scorerKeys")
        return values


class TextArea(forms.Textarea):
    """A text of people in any script."""

    def __init__(self) -> None:
        super().__init__(attrs={"rows": 4, "dir": "auto"})


class ItemForm(ReportingForm):
    """An item. Fields that are not sent keep their values."""

    field_names: ClassVar = {"scorerIds": "scorer_keys"}

    # Not stripped: only the exact text is recognized as unchanged, which keeps the value that it shows.
    input = forms.CharField(required=False, strip=False, widget=TextArea)
    ground_truth = forms.CharField(required=False, strip=False, widget=TextArea)
    tool_mocks = JSONTextField(help_text="A list of {toolName, args, output}. A mock answers in place of its tool.")
    unmocked_tool_policy = forms.ChoiceField(
        required=False, label="Calls without a mock", choices=ItemVersion.Policy.choices
    )
    expected_trajectory = JSONTextField(label="Expected steps", help_text="An object such as {steps: [{name}]}.")
    scorer_keys = KeysField(
        required=False, label="Scorers", help_text="Blank: those of the dataset. “none”: no scorer."
    )
    request_context = JSONTextField(help_text="A JSON object.")
    metadata = JSONTextField(help_text="A JSON object.")

    def __init__(self, *args: Any, version: ItemVersion | None = None, **kwargs: Any) -> None:
        self.version = version
        content = version.content if version else {}
        initial = {name: content.get(name) for name in self.base_fields}
        for name in ("input", "ground_truth"):
            initial[name] = text_of_json(initial[name])
        if initial["scorer_keys"] == []:
            initial["scorer_keys"] = ["none"]
        kwargs["initial"] = initial
        super().__init__(*args, **kwargs)

    def clean_input(self) -> object:
        value = self._edited("input")
        # A stored input of null is displayed as a blank text, and may stay one.
        if value is None and "input" in self.data and (self.version is None or self.version.input is not None):
            raise ValidationError("The input is blank. Enter a text or JSON.")
        return value

    def clean_ground_truth(self) -> object:
        return self._edited("ground_truth")

    def clean_scorer_keys(self) -> object:
        keys = self.cleaned_data["scorer_keys"]
        # Null inherits the scorers of the dataset; an empty list means none.
        return [] if keys == ["none"] else keys or None

    def _edited(self, name: str) -> object:
        return edited_value(self.cleaned_data[name], getattr(self.version, name) if self.version else None)

    @property
    def body(self) -> JSONObject:
        """The valid values of the fields that were sent, by wire name."""
        values = {to_wire(name): value for name, value in self.cleaned_data.items() if name in self.data}
        if "scorerKeys" in values:
            values["scorerIds"] = values.pop("scorerKeys")
        return values
