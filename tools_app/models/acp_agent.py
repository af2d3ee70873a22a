"""ACP agents: programs that speak the Agent Client Protocol, which agents use as tools or sub-agents."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from pydantic import ValidationError as PydanticValidationError

from agentcms.db.encryption import decrypt, encrypt
from agentcms.wire.json_types import JSONObject
from tools_app.acp.limits import Limits
from tools_app.acp.workspaces.names import validate_workspace_name
from tools_app.models.versioned import VersionedConfiguration
from tools_app.programs.commands import ACP_COMMANDS
from tools_app.programs.environment import validate_environment

ENVIRONMENT_VALUES = "environment of ACP agents"  # the purpose of their encryption


class AcpAgent(VersionedConfiguration):
    """An ACP agent: its program, what it may do, and its limits. Only superusers change it; every team may use it."""

    class Permissions(models.TextChoices):
        """The answer to a request of the agent for permission."""

        ASK = "ask", "Ask a person"
        ALLOW_READS = "allow_reads", "Allow reading, ask for the rest"
        FIRST_OPTION = "first_option", "Choose the first option"
        REJECT = "reject", "Reject"

    key = models.CharField(
        "ID",
        max_length=40,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*\Z", "Use lowercase letters, digits and '-'.")],
        help_text="Agents name it acp-ID; cannot be changed.",
    )
    title = models.CharField("name", max_length=100)
    description = models.TextField(
        blank=True, default="", help_text="Its purpose. The models that may call it read this."
    )
    command_key = models.CharField("command", max_length=64, help_text="A key of ACP_COMMANDS.")
    encrypted_environment = models.TextField(blank=True, default="", editable=False)
    # Beside the encrypted values: pages and versions name the variables without decrypting them.
    environment_names = models.JSONField(default=list, editable=False)
    auth_method_id = models.CharField(
        "authentication method",
        max_length=128,
        blank=True,
        default="",
        help_text="The ID of a method that the agent offers. Blank: none is needed.",
    )
    persists_session = models.BooleanField(
        "keep the session", default=True, help_text="One process and session for each conversation, for 10 minutes."
    )
    permissions = models.CharField(max_length=16, choices=Permissions, default=Permissions.ASK)
    limits = models.JSONField(default=dict, blank=True)
    model = models.CharField(
        max_length=128, blank=True, default="", help_text="The ID of a model of the agent. Blank: its own choice."
    )
    workspace = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="The name of a workspace of the team. Blank: a folder for each conversation.",
    )
    is_enabled = models.BooleanField("enabled", default=True)

    class Meta:
        verbose_name = "ACP agent"
        ordering: ClassVar = ["title", "key"]

    def __str__(self) -> str:
        return self.title or self.key

    def clean(self) -> None:
        """Raise ValidationError by field."""
        super().clean()
        self.run_checks(
            {
                "command_key": self._clean_command,
                "is_enabled": self._clean_sandbox,
                "limits": self._clean_limits,
                "workspace": self._clean_workspace,
            }
        )

    def _clean_command(self) -> None:
        if not self.command_key:  # the error of the field says that it is required
            return
        command = ACP_COMMANDS.get(self.command_key)
        if forbidden := [name for name in self.environment_names if name not in command.environment_names]:
            names = ", ".join(forbidden)
            raise ValidationError(f"The command does not allow the stored variables {names}. Delete them.", "command")

    def _clean_sandbox(self) -> None:
        command = ACP_COMMANDS.find(self.command_key)
        if self.is_enabled and command is not None:
            command.require_sandbox()

    def _clean_limits(self) -> None:
        try:
            Limits.model_validate(self.limits)
        except PydanticValidationError as error:
            texts = [f"{'.'.join(map(str, issue['loc']))}: {issue['msg']}." for issue in error.errors()]
            raise ValidationError(texts, "limits") from None

    def _clean_workspace(self) -> None:
        if self.workspace:
            validate_workspace_name(self.workspace)

    @property
    def all_limits(self) -> Limits | None:
        """The limits with the defaults of those that are not set, or None if the stored ones are not valid."""
        with suppress(PydanticValidationError):
            return Limits.model_validate(self.limits)
        return None

    @property
    def environment(self) -> dict[str, str] | None:
        """The variables of the program, or None if they were encrypted with another secret."""
        if not self.encrypted_environment:
            return {}
        text = decrypt(self.encrypted_environment, ENVIRONMENT_VALUES)
        return None if text is None else dict(json.loads(text))

    def set_environment(self, environment: dict[str, str]) -> None:
        """Replace the variables. Raise ValidationError for those that the command does not allow."""
        validate_environment(environment, ACP_COMMANDS.find(self.command_key))
        self.encrypted_environment = encrypt(json.dumps(environment), ENVIRONMENT_VALUES) if environment else ""
        self.environment_names = sorted(environment)

    @property
    def snapshot(self) -> JSONObject:
        """The configuration under wire names, without the values of the environment."""
        return {
            "title": self.title,
            "description": self.description,
            "commandKey": self.command_key,
            "envNames": list(self.environment_names),
            "authMethodId": self.auth_method_id,
            "persistSession": self.persists_session,
            "permissions": self.permissions,
            "limits": self.limits,
            "model": self.model,
            "workspace": self.workspace,
            "enabled": self.is_enabled,
        }
