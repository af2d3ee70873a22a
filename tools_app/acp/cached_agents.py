"""The table of ACP agents, which each process caches for a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError
from django.db import transaction

from agentcms.db.cached_table import CachedTable
from agentcms.errors import NotFound
from tools_app.acp.errors import AcpError
from tools_app.acp.limits import Limits
from tools_app.models import AcpAgent
from tools_app.programs.commands import ACP_COMMANDS

DELETED_MESSAGE = "The ACP agent was deleted."


@dataclass(frozen=True)
class AcpRecord:
    """An ACP agent with its environment, or with the reason why it cannot be used."""

    pk: int
    key: str
    title: str
    description: str
    command_key: str
    auth_method_id: str
    persists_session: bool
    permissions: str  # of AcpAgent.Permissions
    limits: Limits
    model: str
    workspace: str
    version_number: int
    revision: str  # changes with each change of the row
    reason: str  # a message for users if it cannot be used
    environment: Mapping[str, str] = field(repr=False, default_factory=dict)


def record_from_row(row: AcpAgent) -> AcpRecord:
    """Return an ACP agent with its decrypted environment."""
    environment = row.environment
    return AcpRecord(
        pk=row.pk,
        key=row.key,
        title=row.title,
        description=row.description,
        command_key=row.command_key,
        auth_method_id=row.auth_method_id,
        persists_session=row.persists_session,
        permissions=row.permissions,
        limits=row.all_limits or Limits(),
        model=row.model,
        workspace=row.workspace,
        version_number=row.last_version_number,
        revision=f"{row.pk} {row.updated_at.isoformat()}",
        reason=acp_unavailable_reason(row, environment),
        environment=environment or {},
    )


def acp_unavailable_reason(row: AcpAgent, environment: Mapping[str, str] | None) -> str:
    """Return why an ACP agent cannot be used, or a blank text."""
    if not row.is_enabled:
        return f"The ACP agent '{row.title}' is disabled."
    if environment is None:
        return (
            f"The environment of the ACP agent '{row.title}' was encrypted with another PROVIDER_KEY_SECRET. "
            "Enter it again."
        )
    if row.all_limits is None:
        return f"The limits of the ACP agent '{row.title}' are not valid. Enter them again."
    try:
        ACP_COMMANDS.get(row.command_key).require_sandbox()
    except ValidationError as error:
        return " ".join(error.messages)
    return ""


def lock_acp_row(agent_id: int) -> AcpAgent:
    """Lock an ACP agent inside a transaction. Raise NotFound if it was deleted."""
    row = AcpAgent.objects.select_for_update().filter(pk=agent_id).first()
    if row is None:
        raise NotFound("The ACP agent was deleted meanwhile.")
    return row


def switch_agent(agent_id: int, is_enabled: bool) -> tuple[AcpAgent, str]:
    """Enable or disable an ACP agent.

    Return it with the reason why it cannot be enabled, or a blank text. Raise NotFound if it was deleted meanwhile.
    """
    with transaction.atomic():
        row = lock_acp_row(agent_id)  # others may be changing its other columns
        row.is_enabled = is_enabled
        reason = acp_unavailable_reason(row, row.environment) if row.is_enabled else ""
        if not reason:
            row.save(update_fields=["is_enabled", "updated_at"])
    return row, reason


def load_acp_agents() -> dict[str, AcpRecord]:
    return {row.key: record_from_row(row) for row in AcpAgent.objects.all()}


acp_table = CachedTable(load_acp_agents, lambda record: f"{record.revision} {record.reason}")


def get_available_agent(key: str) -> AcpRecord:
    """Return an agent that can be used. Raise AcpError with the reason otherwise."""
    record = acp_table.find(key)
    if record is None:
        raise AcpError(DELETED_MESSAGE)
    if record.reason:
        raise AcpError(record.reason)
    return record


def switched_off_reason(records: Mapping[str, AcpRecord], record: AcpRecord) -> str:
    """Return why a record that was read earlier can no longer be used, or a blank text."""
    current = records.get(record.key)
    if current is None or current.pk != record.pk:
        return DELETED_MESSAGE
    return current.reason
