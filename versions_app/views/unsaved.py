"""Unsaved changes of the editor, as a form and as the snapshot that saving them would create."""

from __future__ import annotations

from django.http import HttpRequest

from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.forms.existing_agent import ExistingAgentForm
from agents_app.models import Agent
from versions_app.models import AgentVersion


def parse_editor_form(request: HttpRequest, agent: Agent) -> ExistingAgentForm:
    form = ExistingAgentForm.from_request(request.POST, agent, request.user)
    form.is_valid()
    return form


def unsaved_snapshot(head: AgentVersion, form: ExistingAgentForm) -> JSONObject:
    """Return the snapshot that saving the form would create: the head with the changed fields."""
    return schema.to_snapshot(form.changed_fields(), head.snapshot)
