"""Fixtures and functions of page tests."""

from typing import Any

import pytest
from django.test import Client

from access_app.role import Role
from agents_app.forms.existing_agent import ExistingAgentForm
from agents_app.models import Agent
from tests.factories import AgentFactory, member


def browser(user: Any, **headers: str) -> Client:
    """Return a client in which the user is signed in."""
    client = Client(headers=headers)
    client.force_login(user)
    return client


def editor_form(agent: Agent, **changed: Any) -> dict[str, Any]:
    """Return the form data of the editor of this agent with changed fields."""
    form = ExistingAgentForm.for_agent(Agent.objects.with_versions().get(pk=agent.pk), None)
    sent = {field.html_name: field.field.prepare_value(field.initial) for field in form}
    for scorer in form.scorer_rows:
        sent[f"scorers-{scorer['key']}-type"] = scorer["type"]
        sent[f"scorers-{scorer['key']}-amount"] = scorer["amount"]
    for section in form.memory_sections:
        rows = [*section.rows, *filter(None, [section.switch])]
        sent |= {row.name: row.text for row in rows}
    del sent["memory_options"]
    sent["scorers"] = [scorer["key"] for scorer in form.scorer_rows if scorer["checked"]]
    sent = {name: "" if value is None else value for name, value in {**sent, **changed}.items()}
    return {name: value.replace("\n", "\r\n") if isinstance(value, str) else value for name, value in sent.items()}


@pytest.fixture
def agent(db: None) -> Agent:
    return AgentFactory()


@pytest.fixture
def publisher(db: None) -> Client:
    return browser(member(Role.PUBLISHER))


@pytest.fixture
def editor(db: None) -> Client:
    return browser(member(Role.EDITOR))


@pytest.fixture
def viewer(db: None) -> Client:
    return browser(member(Role.VIEWER))
