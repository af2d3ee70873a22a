"""MCP servers, whose tools agents can use."""

from __future__ import annotations

import json
from typing import ClassVar, Self
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from access_app.caller import Caller
from access_app.owned_rows import OwnedQuerySet
from access_app.permissions import SHARED_OWNER, has_role
from access_app.role import Role
from agentcms.db.encryption import decrypt, encrypt
from agentcms.outbound.addresses import AddressRefused, validate_url
from agentcms.wire.json_types import JSONObject
from tools_app.mcp.definitions import Definition, changed_names
from tools_app.mcp.headers import validate_headers
from tools_app.models.versioned import VersionedConfiguration
from tools_app.programs.commands import MCP_COMMANDS

HEADER_VALUES = "headers of MCP servers"  # the purpose of their encryption
ACCEPTED_FOR_ALL = "acceptedForAll"  # beside a definition that a person accepted
MAX_TIMEOUT = 600  # seconds

_timeout_validators = [MinValueValidator(1), MaxValueValidator(MAX_TIMEOUT)]


class McpServerQuerySet(OwnedQuerySet["McpServer"]):
    def without_definitions(self) -> Self:
        """Leave out the long columns. Lists use this."""
        return self.defer("tools", "accepted")

    def with_prefix_of(self, server: McpServer) -> Self:
        """Filter to the other servers that begin the names of their tools like this one, for the same agents."""
        prefix = server.prefix or server.key
        others = self.exclude(pk=server.pk).filter(Q(prefix=prefix) | Q(prefix="", key=prefix))
        return others if server.owner_id == SHARED_OWNER else others.usable_by(server.owner_id)


def validate_server_url(url: str) -> None:
    """Raise AddressRefused for a URL that is invalid, names a private address or has a query."""
    validate_url(url)
    parts = urlsplit(url)
    if parts.query or parts.fragment:  # everybody who may use the server reads the URL
        raise AddressRefused("The URL may have no query and no fragment. Put keys into headers.", "url")


class McpServer(VersionedConfiguration):
    """An MCP server: how it is reached, and the tools that it listed last.

    `tools` has the definition of each tool as the server listed it last, and `accepted` the one that was accepted for
    agents. They differ after the server changed a tool, until somebody accepts the change.
    """

    class Transport(models.TextChoices):
        HTTP = "http", "HTTP"
        STDIO = "stdio", "Program on this machine (stdio)"

    class Approval(models.TextChoices):
        CHANGES = "changes", "Tools that change something, as the server says"
        ALWAYS = "always", "Every tool"

    key = models.CharField(
        "ID",
        max_length=40,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*\Z", "Use lowercase letters, digits and '-'.")],
        help_text="Used in agents and in the API; cannot be changed.",
    )
    title = models.CharField("name", max_length=100)
    description = models.TextField(blank=True, default="")
    # No foreign key: a team has no row, it exists by its memberships.
    owner_id = models.CharField(
        "team", max_length=128, blank=True, default="", help_text="Blank: shared with every team."
    )
    transport = models.CharField(max_length=8, choices=Transport, default=Transport.HTTP)
    url = models.CharField("URL", max_length=500, blank=True, default="")
    encrypted_headers = models.TextField(blank=True, default="", editable=False)
    # Beside the encrypted values: pages and versions name the headers without decrypting them.
    header_names = models.JSONField(default=list, editable=False)
    command_key = models.CharField(
        "command", max_length=64, blank=True, default="", help_text="A key of MCP_COMMANDS, for programs."
    )
    connect_timeout = models.PositiveSmallIntegerField(
        default=10, validators=_timeout_validators, help_text="Seconds to connect and to list the tools."
    )
    call_timeout = models.PositiveSmallIntegerField(
        default=60, validators=_timeout_validators, help_text="Seconds that a call may take."
    )
    prefix = models.CharField(
        max_length=40,
        blank=True,
        default="",
        validators=[RegexValidator(r"^[A-Za-z][A-Za-z0-9_-]*\Z", "Use letters, digits, '_' and '-'.")],
        help_text="Begins the names of the tools for models. Blank: the ID.",
    )
    approval = models.CharField("calls that need approval", max_length=16, choices=Approval, default=Approval.CHANGES)
    is_enabled = models.BooleanField("enabled", default=True)
    tools = models.JSONField(default=dict, editable=False)
    accepted = models.JSONField(default=dict, editable=False)
    listed_at = models.DateTimeField(null=True, editable=False)
    list_error = models.TextField(blank=True, default="", editable=False)

    objects = McpServerQuerySet.as_manager()

    class Meta:
        verbose_name = "MCP server"
        ordering: ClassVar = ["title", "key"]
        indexes: ClassVar = [models.Index(fields=["owner_id"], name="mcp_server_owner")]

    def __str__(self) -> str:
        return self.title or self.key

    def clean(self) -> None:
        """Raise ValidationError by field."""
        super().clean()
        self.run_checks(
            {"url": self._clean_url, "command_key": self._clean_command, "is_enabled": self._clean_sandbox}
        )

    def _clean_url(self) -> None:
        if self.transport == self.Transport.HTTP:
            validate_server_url(self.url)
        elif self.url:
            raise ValidationError("A program has no URL. Leave this blank.", "url")

    def _clean_command(self) -> None:
        if self.transport == self.Transport.STDIO:
            MCP_COMMANDS.get(self.command_key)
        elif self.command_key:
            raise ValidationError("A server with a URL has no command. Leave this blank.", "command_key")

    def _clean_sandbox(self) -> None:
        command = MCP_COMMANDS.find(self.command_key)
        if self.transport == self.Transport.STDIO and self.is_enabled and command is not None:
            command.require_sandbox()

    @property
    def address(self) -> tuple[str, str, str]:
        """The values that decide where the headers are sent."""
        return self.transport, self.url, self.command_key

    @property
    def connection_columns(self) -> tuple[object, ...]:
        """The values that decide which tools the server lists: the address and the headers."""
        return self.address, self.encrypted_headers

    @property
    def headers(self) -> dict[str, str] | None:
        """The headers of each request, or None if they were encrypted with another secret."""
        if not self.encrypted_headers:
            return {}
        text = decrypt(self.encrypted_headers, HEADER_VALUES)
        return None if text is None else dict(json.loads(text))

    def set_headers(self, headers: dict[str, str]) -> None:
        """Replace the headers. Raise ValidationError for those that cannot be sent."""
        validate_headers(headers)
        self.encrypted_headers = encrypt(json.dumps(headers), HEADER_VALUES) if headers else ""
        self.header_names = sorted(headers)

    @property
    def definitions(self) -> dict[str, Definition]:
        """The tools as the server listed them last, by name."""
        return {name: Definition.from_json(name, value) for name, value in self.tools.items()}

    @property
    def accepted_definitions(self) -> dict[str, Definition]:
        return {name: Definition.from_json(name, value) for name, value in self.accepted.items()}

    @property
    def tools_accepted_for_all(self) -> frozenset[str]:
        """The names of the tools whose definition a person accepted for all agents."""
        return frozenset(name for name, value in self.accepted.items() if value.get(ACCEPTED_FOR_ALL))

    @property
    def changed_tools(self) -> list[str]:
        """The names of the tools whose definition differs from the accepted one."""
        return changed_names(self.definitions, self.accepted_definitions)

    @property
    def snapshot(self) -> JSONObject:
        """The configuration under wire names, without the values of the headers."""
        return {
            "name": self.title,
            "description": self.description,
            "transport": self.transport,
            "url": self.url,
            "commandKey": self.command_key,
            "headerNames": list(self.header_names),
            "connectTimeout": self.connect_timeout,
            "callTimeout": self.call_timeout,
            "prefix": self.prefix,
            "approval": self.approval,
            "enabled": self.is_enabled,
        }

    def editable_by(self, user: Caller) -> bool:
        """Return whether a user may change the server. Of the shared ones only managers of staff may."""
        is_manager = has_role(user, Role.MANAGER, self.owner_id)
        return is_manager and (self.owner_id != SHARED_OWNER or bool(getattr(user, "is_staff", False)))
