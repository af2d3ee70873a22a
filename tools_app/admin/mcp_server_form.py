"""The admin form of MCP servers. Values of headers can be entered but are never displayed."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from access_app.admin_base.team_fields import offer_teams
from access_app.permissions import SHARED_OWNER
from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.fields.programs import COMMAND_MEMBERS, COMMAND_NOT_ALLOWED
from tools_app.mcp.headers import NAMED_TWICE_MESSAGE, validate_headers
from tools_app.models import McpServer
from tools_app.programs.commands import MCP_COMMANDS
from tools_app.quotas import require_server_quota


class McpServerForm(forms.ModelForm):
    """Form of an MCP server. A program is chosen from MCP_COMMANDS and cannot be typed."""

    headers = forms.CharField(
        label="Headers",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "placeholder": "Authorization: Bearer …"}),
        help_text="One per line, as Name: value. They replace the stored ones, are stored encrypted and are never "
        "displayed. Leave empty to keep the stored ones. {{user}}, {{owner}} and {{agent}} name the caller.",
    )
    delete_headers = forms.BooleanField(label="Delete the stored headers", required=False)
    command_key = forms.ChoiceField(label="Command", required=False)

    class Meta:
        model = McpServer
        fields = (
            "key",
            "title",
            "description",
            "owner_id",
            "transport",
            "url",
            "command_key",
            "headers",
            "delete_headers",
            "prefix",
            "approval",
            "connect_timeout",
            "call_timeout",
            "is_enabled",
        )
        widgets: ClassVar = {
            "description": forms.Textarea(attrs={"rows": 2}),
            "url": forms.URLInput(attrs={"class": "vURLField", "placeholder": "https://tools.example.org/mcp"}),
        }
        help_texts: ClassVar = {
            "description": "What its tools are for.",
            "url": "The address of the server, without a query. Put keys into headers.",
        }

    user: Any = None  # the admin sets it

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "owner_id" in self.fields:
            current = [] if self.instance._state.adding else [self.instance.owner_id]
            offer_teams(self.fields["owner_id"], self.user, *current)
            self.fields["owner_id"].help_text = "Agents of this team can use it. Shared: agents of all teams."
        if "command_key" in self.fields:
            keys = sorted({*MCP_COMMANDS.all(), self.instance.command_key} - {""})
            self.fields["command_key"] = forms.ChoiceField(
                label="Command",
                required=False,
                choices=[("", "None"), *((key, key) for key in keys)],
                help_text="A program of MCP_COMMANDS, which the operator of the server sets.",
            )

    def clean(self) -> dict[str, Any]:
        # Django ignores fields that the form has not, but a program is refused, as in the API.
        if COMMAND_MEMBERS & {*self.data}:
            message = "Commands are not taken from a form. Choose a key of MCP_COMMANDS."
            raise ValidationError(message, code=COMMAND_NOT_ALLOWED)
        values = super().clean() or {}
        owner = values.get("owner_id", self.instance.owner_id)
        # The rule is a method of the model: here it looks at the team that was chosen.
        probe = McpServer(owner_id=owner)
        if "owner_id" in self.fields and not probe.editable_by(self.user):
            whose = "shared servers" if owner == SHARED_OWNER else f"the servers of {owner}"
            self.add_error("owner_id", ValidationError(f"Only managers may change {whose}.", code="owner"))
        elif "owner_id" in self.fields and (self.instance._state.adding or "owner_id" in self.changed_data):
            self._clean_quota(owner)
        self._clean_stored_headers(values)
        return values

    def _clean_quota(self, owner_id: str) -> None:
        try:
            require_server_quota(owner_id)
        except ApiError as error:
            self.add_error("owner_id", ValidationError(error.error, code=error.code))

    def clean_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["headers"].splitlines(), 1):
            name, separator, value = line.partition(":")
            if not line.strip():
                continue
            if not separator:
                raise ValidationError(f"Line {number} has no colon. Write Name: value.", code="headers")
            if name.strip() in headers:  # otherwise the last value would count
                raise ValidationError(NAMED_TWICE_MESSAGE, code="headers")
            headers[name.strip()] = value.strip()
        validate_headers(headers)
        return headers

    def _clean_stored_headers(self, values: JSONObject) -> None:
        is_moved = {"url", "transport", "command_key"} & {*self.changed_data}
        is_given = values.get("headers") or values.get("delete_headers")
        if self.instance.encrypted_headers and is_moved and not is_given:
            # Otherwise a user could read the stored headers by sending them to a server of their own.
            message = "The address changed. Enter the headers again, or delete the stored ones."
            self.add_error("headers", ValidationError(message, code="moved"))

    def save(self, commit: bool = True) -> McpServer:
        values = self.cleaned_data
        if values["headers"] or values["delete_headers"]:
            self.instance.set_headers(values["headers"])
        row: McpServer = super().save(commit)
        return row
