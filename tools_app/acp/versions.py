"""The versions of ACP agents, and how an earlier one is restored."""

from __future__ import annotations

from agentcms.errors import NotFound
from agentcms.ids import parse_whole_number
from tools_app.models import AcpAgent, AcpAgentVersion

# The column of each member of a snapshot. The values of the environment are in no snapshot.
ACP_SNAPSHOT_COLUMNS = {
    "title": "title",
    "description": "description",
    "commandKey": "command_key",
    "authMethodId": "auth_method_id",
    "persistSession": "persists_session",
    "permissions": "permissions",
    "limits": "limits",
    "model": "model",
    "workspace": "workspace",
    "enabled": "is_enabled",
}


def get_acp_version(agent: AcpAgent, number: int | str) -> AcpAgentVersion:
    """Return a version of an ACP agent. Raise NotFound."""
    version: AcpAgentVersion | None = agent.versions.filter(version_number=parse_whole_number(str(number))).first()
    if version is None:
        raise NotFound(f"Version {number} of ACP agent {agent.key} not found")
    return version


def restore_acp_version(agent: AcpAgent, version: AcpAgentVersion) -> list[str]:
    """Give a locked ACP agent the configuration of an earlier version, as a new version.

    The stored environment stays unless the command changes: it was entered for another program. Return the names of
    the deleted variables. Raise ValidationError by field if the configuration is no longer valid.
    """
    command, names = agent.command_key, list(agent.environment_names)
    agent.read_snapshot(version.snapshot, ACP_SNAPSHOT_COLUMNS)
    is_moved = agent.command_key != command
    if is_moved:
        agent.set_environment({})
    agent.save_restored()
    return names if is_moved else []
