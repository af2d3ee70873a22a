"""API errors for the exceptions of the domain of agents. Importing this module registers them."""

from __future__ import annotations

from agentcms.api.exceptions import api_error
from agentcms.errors import ApiError, BadRequest, Conflict
from agents_app.configuration.schema import ConfigError
from agents_app.editing.archive_guard import AgentArchived
from agents_app.editing.version_refusals import GateNotMet


@api_error.register
def _config_error(exception: ConfigError) -> ApiError:
    if exception.issue_code:
        return ApiError(422, "Invalid request body", exception.issue_code, exception.issues)
    return BadRequest("request body", exception.issues)


@api_error.register
def _gate_not_met(exception: GateNotMet) -> ApiError:
    return Conflict(exception.summary, "gate_not_met")


@api_error.register
def _agent_archived(exception: AgentArchived) -> ApiError:
    return Conflict(str(exception), "archived")
