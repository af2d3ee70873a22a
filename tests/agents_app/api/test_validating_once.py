"""Validation of fields in a write, which happens once per changed field."""

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from agents_app.configuration import schema
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.api_client import AGENTS, MODEL, agent_path
from tests.factories import AgentFactory, UserFactory, member
from tests.page_client import browser, editor_form
from versions_app.exchange.records import Record, import_record


@pytest.fixture
def validated_fields(monkeypatch):
    """Record the wire names of validated fields."""
    names, find_faults = [], schema.find_json_faults

    def note(value, path="", *args):
        names.append(path)
        return find_faults(value, path, *args)

    monkeypatch.setattr(schema, "find_json_faults", note)
    return names


def test_a_patch_validates_its_fields_once(api, validated_fields):
    AgentFactory(id="concierge")
    validated_fields.clear()

    api.patch(agent_path(), {"name": "Porter", "tools": []})

    assert validated_fields == ["name", "tools"]


def test_a_publishing_patch_beside_a_draft_validates_its_fields_once(api, validated_fields):
    with change(publish=False):
        AgentFactory(id="concierge").edit({"description": "Draft"})
    validated_fields.clear()

    api.patch(agent_path(), {"name": "Porter"})

    assert validated_fields == ["name"]


def test_creating_an_agent_validates_its_fields_once(api, validated_fields):
    api.post(AGENTS, {"id": "concierge", "name": "Concierge", "instructions": "", "model": MODEL})

    assert sorted(validated_fields) == ["id", "instructions", "model", "name"]


def test_saving_the_editor_validates_each_field_once(validated_fields):
    agent = AgentFactory()
    sent = editor_form(agent, name="Porter", publish="yes")
    validated_fields.clear()

    browser(member("publisher")).post(reverse("agents:edit", args=[agent.pk]), sent)

    assert Agent.objects.get().name == "Porter"
    assert len(validated_fields) == len(set(validated_fields))


def test_importing_a_record_validates_each_field_once(validated_fields):
    agent = AgentFactory(id="a")
    live = {**agent.active_version.snapshot, "name": "Porter"}
    validated_fields.clear()

    import_record(Record("a", {"id": "a", "agent": live}), UserFactory(is_superuser=True), {"publish": True})

    assert Agent.objects.get().name == "Porter"
    assert len(validated_fields) == len(set(validated_fields))


def test_an_edit_by_code_is_validated():
    agent = AgentFactory()

    with pytest.raises(ValidationError, match="blank"):
        agent.edit({"name": " "})

    assert agent.versions.count() == 1


def test_an_edit_takes_configuration_only():
    with pytest.raises(TypeError, match="owner_id"):
        AgentFactory().edit({"owner_id": "kitchen"})
