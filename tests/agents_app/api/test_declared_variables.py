"""Declared variables as a part of an agent and of its versions."""

import json

import pytest

from agents_app.models import Agent
from tests.api_client import Caller, agent_path
from tests.factories import AgentFactory, api_key, member
from versions_app.compare.change_summary import summarize_changes, summary_line
from versions_app.compare.sections import build_sections
from versions_app.exchange.records import Record, import_record

pytestmark = pytest.mark.django_db

TONE = {"type": "string", "description": "How to write.", "default": "calm"}
SCHEMA = {"type": "object", "properties": {"tone": TONE, "name": {}}, "required": ["name"]}


@pytest.fixture
def caller():
    return Caller(api_key(member("publisher")))


def test_they_come_back_as_they_were_sent(caller):
    sent = {**SCHEMA, "$schema": "https://json-schema.org/draft-07/schema#", "additionalProperties": False}

    created = caller.create(requestContextSchema=sent)

    assert created.status_code == 201
    assert created.body["warnings"] == []
    assert caller.get(agent_path()).body["requestContextSchema"] == sent


def test_they_are_a_part_of_each_version(caller):
    caller.create()
    caller.patch(agent_path(), {"requestContextSchema": SCHEMA})
    caller.patch(agent_path(), {"requestContextSchema": {"properties": {"tone": {}}}})

    newest, second, first = caller.get(agent_path("concierge", "versions")).body["versions"]
    compared = caller.get(f"{agent_path('concierge', 'versions', 'compare')}?from={second['id']}&to={newest['id']}")

    assert "requestContextSchema" not in first["snapshot"]
    assert (second["snapshot"]["requestContextSchema"], second["changedFields"]) == (SCHEMA, ["requestContextSchema"])
    assert [diff["field"] for diff in compared.body["diffs"]] == ["requestContextSchema"]
    restored = caller.post(agent_path("concierge", "versions", first["id"], "restore"))
    assert restored.body["changedFields"] == ["requestContextSchema"]
    assert "requestContextSchema" not in caller.get(agent_path()).body


def test_null_removes_them_and_an_equal_value_makes_no_version(caller):
    caller.create(requestContextSchema=SCHEMA)

    same = caller.patch(agent_path(), {"requestContextSchema": SCHEMA})
    removed = caller.patch(agent_path(), {"requestContextSchema": None})

    assert same.body["headVersionNumber"] == 1
    assert removed.body["headVersionNumber"] == 2
    assert "requestContextSchema" not in removed.body


def test_an_agent_without_them_has_the_snapshot_of_earlier_releases():
    agent = AgentFactory()

    version = agent.edit({"description": "Greets."})

    assert "requestContextSchema" not in agent.snapshot_text
    assert version.changed_fields == ["description"]
    assert Agent.objects.get(pk=agent.pk).request_context_schema is None


def test_a_draft_and_a_published_edit_keep_them(caller):
    caller.create(requestContextSchema=SCHEMA)
    caller.patch(agent_path(), {"requestContextSchema": None, "autoPublish": False})

    edited = caller.patch(agent_path(), {"name": "Porter"})

    assert edited.body["hasDraft"] is True
    assert edited.body["requestContextSchema"] == SCHEMA
    assert "requestContextSchema" not in caller.get(f"{agent_path()}?status=draft").body


@pytest.mark.parametrize(
    ("schema", "field", "message"),
    [
        ("tone", "requestContextSchema", "This must be an object."),
        ({"type": "array"}, "requestContextSchema.type", 'The type of the request context is "object".'),
        ({"properties": []}, "requestContextSchema.properties", "This must be an object."),
        ({"properties": {"tone": "a"}}, "requestContextSchema.properties.tone", "This must be an object."),
        (
            {"properties": {"tone": {"type": "text"}}},
            "requestContextSchema.properties.tone.type",
            "The type must be one of string, number, integer, boolean, object, array, null, or a list of them.",
        ),
        (
            {"properties": {"tone": {"type": "integer", "default": "a"}}},
            "requestContextSchema.properties",
            "The default of tone: This must be of the type integer.",
        ),
        (
            {"properties": {"mastra__resourceId": {}}},
            "requestContextSchema.properties.mastra__resourceId",
            "'mastra__resourceId' is reserved for the server. Choose another name.",
        ),
        (
            {"required": ["organizationId"]},
            "requestContextSchema.required[0]",
            "'organizationId' is reserved for the server. Choose another name.",
        ),
        ({"required": "tone"}, "requestContextSchema.required", "This must be a list."),
        (
            {"properties": {"tone": {"enum": "a"}}},
            "requestContextSchema.properties.tone.enum",
            "This must be a list of the allowed values.",
        ),
    ],
)
def test_invalid_declarations_are_refused_with_their_path(caller, schema, field, message):
    answer = caller.create(requestContextSchema=schema)

    assert (answer.status_code, answer.body["issues"]) == (400, [{"field": field, "message": message}])
    assert not Agent.objects.exists()


def test_more_than_a_hundred_variables_are_refused(caller):
    many = {"properties": {f"v{number}": {} for number in range(101)}}

    assert caller.create(requestContextSchema=many).status_code == 400


def test_an_export_can_be_imported():
    agent = AgentFactory(request_context_schema=SCHEMA)
    line = json.dumps({"id": "copy", "agent": json.loads(agent.snapshot_text)}).encode()
    user = member("publisher")

    first = import_record(Record.parse(line, set()), user, {})
    again = import_record(Record.parse(line, set()), user, {"publish": True})

    assert (first.action, again.action, first.warnings) == ("create", "same", [])
    assert Agent.objects.get(pk="copy").request_context_schema == SCHEMA


def test_a_summary_names_the_variables():
    before = {"requestContextSchema": {"properties": {"tone": {"default": "calm"}, "old": {}}}}
    after = {"requestContextSchema": {"properties": {"tone": {"default": "loud"}, "new": {}}}}

    assert summary_line(summarize_changes(before, after)) == "Variables +new −old tone.default calm → loud"
    assert summary_line(summarize_changes({}, after)) == "Variables +tone +new"


def test_a_comparison_lists_the_paths_of_the_first_declarations():
    (section,) = build_sections({}, {"requestContextSchema": SCHEMA})

    assert section.label == "Variables"
    assert [(row.path, row.old) for row in section.paths] == [("tone", None), ("name", None), ("required", None)]
