"""The admin form of ACP agents. Values of the environment can be entered but are never displayed."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from agentcms.wire.json_types import JSONObject
from agents_app.configuration.fields.programs import COMMAND_MEMBERS, COMMAND_NOT_ALLOWED
from agents_app.configuration.schema import ConfigError, validate_fields
from tools_app.acp.limits import Limits
from tools_app.models import AcpAgent
from tools_app.programs.commands import ACP_COMMANDS
from tools_app.programs.environment import validate_environment

LIMIT_FIELDS = {
    "memory_mb": "Memory of a process (MB)",
    "processes": "Processes",
    "cpu_seconds": "Processor time of a process (seconds)",
    "prompt_seconds": "Time of a prompt (seconds)",
}


class AcpAgentForm(forms.ModelForm):
    """Form of an ACP agent. Its program is chosen from ACP_COMMANDS and cannot be typed."""

    command_key = forms.ChoiceField(label="Command")
    environment = forms.CharField(
        label="Environment",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "placeholder": "API_KEY=…"}),
        help_text="One variable per line, as NAME=value. They replace the stored variables, are stored encrypted and "
        "are never displayed. Leave blank to keep the stored variables. ACP_COMMANDS lists the allowed names.",
    )
    delete_environment = forms.BooleanField(label="Delete the stored environment", required=False)
    memory_mb = forms.IntegerField(label=LIMIT_FIELDS["memory_mb"])
    processes = forms.IntegerField(label=LIMIT_FIELDS["processes"])
    cpu_seconds = forms.IntegerField(label=LIMIT_FIELDS["cpu_seconds"])
    prompt_seconds = forms.IntegerField(label=LIMIT_FIELDS["prompt_seconds"])

    class Meta:
        model = AcpAgent
        fields = (
            "key",
            "title",
            "description",
            "command_key",
            "environment",
            "delete_environment",
            "auth_method_id",
            "model",
            "persists_session",
            "permissions",
            "workspace",
            *LIMIT_FIELDS,
            "is_enabled",
        )
        widgets: ClassVar = {"description": forms.Textarea(attrs={"rows": 2})}
        help_texts: ClassVar = {
            "key": "Agents choose it by this ID after acp-, for example acp-coder. It cannot be changed.",
            "description": "Its purpose. The models of agents that use it read this.",
            "auth_method_id": "The ID of a sign-in method of the ACP agent. Blank if it needs none.",
            "model": "The ID of one of its models. Blank: it chooses.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        keys = sorted({*ACP_COMMANDS.all(), self.instance.command_key} - {""})
        # The field is missing where the page is read-only, as for limits below.
        if "command_key" in self.fields:
            self.fields["command_key"] = forms.ChoiceField(
                label="Command",
                choices=[("", "Choose a command"), *((key, key) for key in keys)],
                help_text="A program of ACP_COMMANDS, which the operator of the server sets.",
            )
        limits = self.instance.all_limits or Limits()
        for name in LIMIT_FIELDS:
            if name in self.fields:
                self.fields[name].initial = getattr(limits, name)

    def clean(self) -> dict[str, Any]:
        # Django ignores fields that the form has not, but a program is refused, as in the API.
        if COMMAND_MEMBERS & {*self.data}:
            message = "Commands are not taken from a form. Choose a key of ACP_COMMANDS."
            raise ValidationError(message, code=COMMAND_NOT_ALLOWED)
        values = super().clean() or {}
        self._clean_environment(values)
        self.instance.limits = self._clean_limits(values)
        # Before the model is validated: it refuses a command that does not allow the stored names.
        if values.get("delete_environment"):
            self.instance.environment_names = []
        return values

    def clean_environment(self) -> dict[str, str]:
        environment: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["environment"].splitlines(), 1):
            name, separator, value = line.partition("=")
            if not line.strip():
                continue
            if not separator:
                raise ValidationError(f"Line {number} has no equals sign. Write NAME=value.", code="environment")
            if name.strip() in environment:  # otherwise the last value would count
                raise ValidationError(f"Line {number} names a variable again. Name each once.", code="environment")
            environment[name.strip()] = value.strip()
        return environment

    def _clean_environment(self, values: JSONObject) -> None:
        environment = values.get("environment") or {}
        is_moved = "command_key" in self.changed_data and self.instance.encrypted_environment
        if is_moved and not environment and not values.get("delete_environment"):
            # Otherwise another program would get the values.
            message = "The command changed. Enter the environment again, or delete the stored one."
            self.add_error("environment", ValidationError(message, code="moved"))
        try:
            validate_environment(environment, ACP_COMMANDS.find(values.get("command_key", "")))
        except ValidationError as error:
            self.add_error("environment", error)
        else:
            if environment:
                self.instance.environment_names = sorted(environment)

    def _clean_limits(self, values: JSONObject) -> dict[str, int]:
        # Not validated here: it gives the values their wire names, for `validate_fields`.
        wire = Limits.model_construct(**{name: values.get(name) for name in LIMIT_FIELDS}).model_dump(
            by_alias=True, warnings=False
        )
        limits = {name: value for name, value in wire.items() if value is not None}
        try:
            validate_fields(Limits, limits)
        except ConfigError as error:
            names = {info.alias or name: name for name, info in Limits.model_fields.items()}
            for issue in error.issues:
                self.add_error(names.get(issue.field), ValidationError(issue.message, code="limits"))
            return {}
        return limits

    def save(self, commit: bool = True) -> AcpAgent:
        values = self.cleaned_data
        if values.get("environment") or values.get("delete_environment"):
            self.instance.set_environment(values["environment"])
        row: AcpAgent = super().save(commit)
        return row
