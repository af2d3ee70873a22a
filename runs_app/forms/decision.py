"""The form of a decision about a call: a reason, and edited arguments or the data that the tool waits for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.schema import Issue
from agents_app.forms.fields import RawTextField
from agents_app.forms.objects.field import ObjectField, StructuredValue, is_json_view
from agents_app.forms.objects.members import InputError
from agents_app.forms.objects.schema import WHOLE_VALUE, SchemaMembers, schema_members
from runs_app.approvals.decisions import MAX_DECISION_REASON_LENGTH, Verdict
from runs_app.display.approvals import PendingCallView

DATA = "data"  # the field with the arguments or the answer
NO_VERDICT = "Nothing was decided. Press one of the buttons below."


class DecisionForm(forms.Form):
    """The fields of a decision. `data` is edited by an input for each property of a schema, or as JSON.

    Names and ids have the ID of the call, because a page shows several calls.
    """

    reason = RawTextField(
        required=False,
        max_length=MAX_DECISION_REASON_LENGTH,
        label="Reason",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "The agent reads it, and can answer accordingly."}),
    )
    mark = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(
        self,
        call_id: UUID,
        schema: JSONMapping | None,
        value: object,
        data: QueryDict | None = None,
        label: str = "Arguments",
    ) -> None:
        super().__init__(data, prefix=f"call-{call_id}")
        self.value = value
        self.issues: list[ValidationError] = []  # of a decision that does not fit its call
        self.shape = schema_members(schema) or SchemaMembers(())
        self.fields[DATA] = ObjectField(members=self.shape.members, label=label)
        has_no_value = value is None and bool(self.shape.members)
        self.initial[DATA] = {} if has_no_value else self.shape.wrap(value)

    @classmethod
    def for_call(cls, view: PendingCallView, data: QueryDict | None = None) -> DecisionForm:
        """Return the form of a call with its arguments, or for a question with an empty answer."""
        if view.is_question:
            return cls(view.call.pk, view.schema, None, data, label="Answer")
        return cls(view.call.pk, view.schema, view.call.arguments, data)

    def structured(self, view: str = "") -> StructuredValue:
        """Return the arguments for the template, in the view `json` or `fields`, or as they were submitted."""
        bound = self[DATA]
        if not view and self.is_bound and is_json_view(self.data, bound.html_name):
            view = "json"
        value = StructuredValue.build(bound, view)
        if value.inputs is not None:
            value.inputs.errors += [error for error in self.issues if isinstance(error, InputError)]
        return value

    def clean(self) -> dict[str, Any]:
        if self.data.get("verdict") not in Verdict.values:
            self.add_error(None, NO_VERDICT)
        return self.cleaned_data

    @property
    def edited(self) -> Any:
        """The arguments of the valid form."""
        return self.shape.unwrap(self.cleaned_data[DATA])

    @property
    def is_edited(self) -> bool:
        """True if the arguments of the valid form are not those that were shown."""
        return not json_equal(self.edited, self.value)

    def add_issues(self, issues: Iterable[Issue]) -> None:
        """Show the issues of a decision at their inputs, or below all of them."""
        self.issues = [self.describe_issue(issue) for issue in issues]
        self.add_error(DATA, ValidationError(self.issues))

    def describe_issue(self, issue: Issue) -> ValidationError:
        """Return an issue as the error of the input of its argument, or of the whole field."""
        path = issue.field.partition(".")[2]  # without `arguments` or `resumeData`
        name = path.replace("[", ".").partition(".")[0] if self.shape.is_object else WHOLE_VALUE
        member = next((member for member in self.shape.members if member.name == name), None)
        if member is None or is_json_view(self.data, self[DATA].html_name):
            return ValidationError(f"{path}: {issue.message}" if path else issue.message)
        text = issue.message if path in ("", name) else f"{path}: {issue.message}"
        return InputError(f"{member.label}: {text}", f"{self[DATA].html_name}-{name}:0", text)
