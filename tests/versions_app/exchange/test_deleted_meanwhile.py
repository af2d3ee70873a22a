"""Agents that are deleted while a file is imported."""

import pytest

from agents_app.models import Agent, AgentQuerySet
from tests.factories import UserFactory
from versions_app.exchange.records import Record, import_record

pytestmark = pytest.mark.django_db


def test_an_agent_that_is_deleted_during_its_import_is_created_again(monkeypatch):
    live = {"name": "Guide", "instructions": "Help.", "model": {"provider": "demo", "name": "echo"}}
    # The answer of a query before the deletion.
    monkeypatch.setattr(AgentQuerySet, "exists", lambda agents: True)

    outcome = import_record(Record("guide", {"id": "guide", "agent": live}), UserFactory(is_superuser=True), {})

    assert outcome.action == "create"
    assert Agent.objects.filter(pk="guide").count() == 1
