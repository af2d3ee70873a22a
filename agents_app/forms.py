"""The form of an agent with its fields as they are stored, for the admin; the shape of an agent does the checking."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms

from agents_app import shapes
from agents_app.fields import KeptText, OptionalKey, StrictJSON
from agents_app.models import Agent

LISTS = ("tools", "workflows", "agents", "integration_tools", "input_processors", "output_processors")
OBJECTS = ("model", "default_options", "scorers", "metadata")


class AgentForm(forms.ModelForm):
    """The configuration of an agent. It knows the revision it was opened with, and saves only what was changed."""

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False)
    change_message = KeptText(required=False, max_length=500, label="Message", help_text="What changed, and why.")

    name = KeptText(max_length=200)
    description = KeptText(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    instructions = KeptText(required=False, widget=forms.Textarea(attrs={"rows": 20}))
    memory = OptionalKey(required=False, max_length=256)

    class Meta:
        model = Agent
        fields = list(shapes.FIELDS)
        field_classes: ClassVar = dict.fromkeys((*LISTS, *OBJECTS), StrictJSON)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in LISTS:
            self.fields[name].empty = list  # type: ignore[attr-defined]
        for name in (*LISTS, *OBJECTS[1:]):
            self.fields[name].required = False
        self.fields["revision"].initial = self.instance.revision

    def is_stale_for(self, row: Agent) -> bool:
        """Whether somebody saved since this form was opened."""
        opened = self.cleaned_data.get("revision")
        return opened is not None and opened != row.revision

    def changed_fields(self) -> dict[str, Any]:
        """The configuration that was changed in the form, by name."""
        return {
            name: self.cleaned_data[name]
            for name in shapes.FIELDS
            if name in self.changed_data and name in self.cleaned_data
        }
