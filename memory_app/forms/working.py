"""The form of a working memory: a text, or an input for each property of its schema."""

from __future__ import annotations

from collections.abc import Iterable

from django import forms
from django.http import QueryDict

from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.schema import Issue
from agents_app.forms.objects.field import ObjectField, StructuredValue, is_json_view
from agents_app.forms.objects.schema import schema_members
from memory_app.working import values
from memory_app.working.values import WorkingMemory

TEXT_NAME = "text"


class WorkingMemoryForm(forms.Form):
    """A working memory, with the revision that the page shows. Blank inputs clear it."""

    text = forms.CharField(
        required=False, strip=False, label="Working memory", widget=forms.Textarea(attrs={"rows": 12, "dir": "auto"})
    )
    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(self, stored: WorkingMemory, blank: str, data: QueryDict | None = None) -> None:
        """Begin with a stored value, or with the blank one that the agent suggests."""
        text = blank if stored.text is None else stored.text
        super().__init__(data, initial={TEXT_NAME: text, "revision": stored.revision})

    @property
    def new_text(self) -> str:
        """The text of the valid form."""
        # Browsers send CR LF. The text would differ from the stored one although nobody changed it.
        return str(self.cleaned_data[TEXT_NAME]).replace("\r\n", "\n")

    def add_issues(self, issues: Iterable[Issue]) -> None:
        """Show what is wrong with the value, each with its path."""
        for issue in issues:
            path = issue.field.removeprefix(values.FIELD).removeprefix(".")
            self.add_error(TEXT_NAME, f"{path}: {issue.message}" if path else issue.message)


class WorkingObjectForm(WorkingMemoryForm):
    """A working memory with a schema. It is edited by inputs, or as JSON."""

    def __init__(self, stored: WorkingMemory, schema: JSONMapping, data: QueryDict | None = None) -> None:
        super().__init__(stored, "", data)
        described = schema_members(schema)
        self.add_label = "" if schema.get("additionalProperties") is False else "Add a member"
        members = described.members if described and described.is_object else ()
        self.fields[TEXT_NAME] = ObjectField(members=members, label="Working memory")
        self.initial[TEXT_NAME] = values.parse_object(stored.text)

    @property
    def new_text(self) -> str:
        value = self.cleaned_data[TEXT_NAME]
        return values.encode(value) if value else ""

    def structured(self, view: str = "") -> StructuredValue:
        """Return the object for the template, in the view `json` or `fields`, or as it was submitted."""
        if not view and self.is_bound and is_json_view(self.data, TEXT_NAME):
            view = "json"
        return StructuredValue.build(self[TEXT_NAME], view)
