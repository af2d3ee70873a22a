"""The API of working memory."""

import json
from urllib.parse import urlencode

import pytest

from memory_app.models import Resource, Thread, WorkingRevision
from tests.api_client import Caller
from tests.factories import api_key, member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

PATH = "/api/memory/threads/t/working-memory"
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}}


def noting(agent, **working):
    agent.edit({"memory": {"options": {"workingMemory": working}}})
    return agent


def test_it_is_written_and_read_with_an_etag(caller, editor, agent):
    add_thread(editor, agent=noting(agent, template="# Person"))

    empty = caller.get(PATH)
    written = caller.post(PATH, {"workingMemory": "# Ann", "resourceId": "alice"})
    answer = caller.get(f"{PATH}?resourceId=alice&agentId=concierge")

    assert empty.body == {
        "workingMemory": None,
        "source": "resource",
        "workingMemoryTemplate": {"format": "markdown", "content": "# Person"},
        "threadExists": True,
    }
    assert (written.status_code, written.body) == (200, {"success": True})
    assert answer.body["workingMemory"] == "# Ann"
    assert (empty.headers["ETag"], answer.headers["ETag"], written.headers["ETag"]) == ('"w0"', '"w1"', '"w1"')
    assert Resource.objects.get(key="alice").working_memory == "# Ann"
    assert WorkingRevision.objects.get().user == editor


def test_a_stale_if_match_is_refused_and_without_one_the_write_wins(caller, editor, agent):
    add_thread(editor, agent=agent)
    caller.post(PATH, {"workingMemory": "One"})

    stale = caller.post(PATH, {"workingMemory": "Two"}, **{"If-Match": '"w0"'})
    fresh = caller.post(PATH, {"workingMemory": "Three"}, **{"If-Match": '"w1"'})
    anyway = caller.post(PATH, {"workingMemory": "Four"})

    assert (stale.status_code, stale.headers["ETag"]) == (412, '"w1"')
    assert (fresh.status_code, anyway.status_code) == (200, 200)
    assert [*WorkingRevision.objects.values_list("value", flat=True)] == ["Four", "Three", "One"]


def test_an_agent_may_note_by_thread_and_after_a_schema(caller, editor, agent):
    add_thread(editor, agent=noting(agent, scope="thread", schema=SCHEMA))

    wrong = caller.post(PATH, {"workingMemory": '{"age": "nine"}'})
    caller.post(PATH, {"workingMemory": '{"age": 9}'})

    answer = caller.get(PATH).body
    assert (wrong.status_code, wrong.body["issues"][0]["field"]) == (400, "workingMemory.age")
    assert (answer["source"], answer["workingMemory"]) == ("thread", '{\n  "age": 9\n}')
    assert answer["workingMemoryTemplate"] == {"format": "json", "content": SCHEMA}
    assert Thread.objects.get().working_revision == 1


@pytest.mark.parametrize(
    ("config", "source", "template"),
    [
        ({"workingMemory": {"scope": "thread"}}, "thread", {"format": "markdown", "content": "# Person"}),
        ({"workingMemory": {"template": "# Mine"}}, "resource", {"format": "markdown", "content": "# Mine"}),
        ({"workingMemory": {"schema": SCHEMA}}, "resource", {"format": "json", "content": SCHEMA}),
        ({"workingMemory": True, "lastMessages": 3}, "resource", {"format": "markdown", "content": "# Person"}),
    ],
)
def test_options_of_the_request_take_the_place_of_those_of_the_agent(caller, editor, agent, config, source, template):
    add_thread(editor, agent=noting(agent, template="# Person"))
    caller.post(PATH, {"workingMemory": "# Ann"})

    answer = caller.get(f"{PATH}?{urlencode({'memoryConfig': json.dumps(config)})}").body

    assert (answer["source"], answer["workingMemoryTemplate"]) == (source, template)
    assert answer["workingMemory"] == ("# Ann" if source == "resource" else None)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("[1]", "memoryConfig"),
        ('{"workingMemory": {"scope": "world"}}', "memoryConfig.workingMemory.scope"),
        ('{"workingMemory": {"template": "# A", "schema": {}}}', "memoryConfig.workingMemory"),
    ],
)
def test_invalid_options_of_the_request_are_refused_with_their_path(caller, editor, agent, config, field):
    add_thread(editor, agent=agent)

    refused = caller.get(f"{PATH}?{urlencode({'memoryConfig': config})}")

    assert (refused.status_code, [issue["field"] for issue in refused.body["issues"]]) == (400, [field])


@pytest.mark.parametrize("text", [None, "", " \n"])
@pytest.mark.parametrize("working", [{"template": "# Person"}, {"schema": SCHEMA}, {"scope": "thread"}], ids=str)
def test_null_and_a_blank_text_clear_it(caller, editor, agent, working, text):
    add_thread(editor, agent=noting(agent, **working))
    caller.post(PATH, {"workingMemory": '{"age": 9}'})

    cleared = caller.post(PATH, {"workingMemory": text})

    answer = caller.get(PATH)
    assert (cleared.status_code, cleared.body) == (200, {"success": True})
    assert (answer.body["workingMemory"], answer.headers["ETag"]) == (None, '"w2"')
    assert [*WorkingRevision.objects.order_by("revision").values_list("value", flat=True)][1] is None


def test_a_thread_that_does_not_exist_yet_has_that_of_its_resource(caller, editor, agent):
    add_thread(editor, agent=agent)
    caller.post(PATH, {"workingMemory": "Ann"})

    answer = caller.get("/api/memory/threads/new/working-memory?resourceId=alice").body

    assert (answer["workingMemory"], answer["threadExists"]) == ("Ann", False)


@pytest.mark.parametrize("body", [{}, {"workingMemory": 7}, {"workingMemory": "x", "resourceId": 7}])
def test_an_invalid_body_is_refused(caller, editor, agent, body):
    add_thread(editor, agent=agent)

    assert caller.post(PATH, body).status_code == 400
    assert Resource.objects.get(key="alice").working_revision == 0


def test_others_neither_read_nor_write_it(caller, editor, agent):
    add_thread(editor, agent=agent)
    caller.post(PATH, {"workingMemory": "Ann"})
    stranger = Caller(api_key(member("publisher")))
    bound = Caller(api_key(editor, resource="bob"))
    reader = Caller(api_key(editor, "viewer"))

    assert stranger.post(PATH, {"workingMemory": "x"}).status_code == 404
    assert stranger.get(f"{PATH}?resourceId=alice").body["workingMemory"] is None
    assert bound.get(PATH).status_code == 403
    assert bound.post(PATH, {"workingMemory": "x"}).status_code == 403
    assert reader.post(PATH, {"workingMemory": "x"}).status_code == 403
    assert Resource.objects.get(key="alice", realm=f"u{editor.pk}").working_memory == "Ann"


def test_the_metadata_of_a_new_thread_sets_it(caller, agent):
    noting(agent, template="# Person")
    body = {"resourceId": "alice", "threadId": "t", "metadata": {"workingMemory": "# Ann"}}

    assert caller.post("/api/memory/threads?agentId=concierge", body).status_code == 201

    assert caller.get(PATH).body["workingMemory"] == "# Ann"


def test_a_copy_of_a_thread_does_not_reset_that_of_its_resource(caller, agent):
    body = {"resourceId": "alice", "threadId": "t", "metadata": {"workingMemory": "# Ann", "topic": "boats"}}
    caller.post("/api/memory/threads?agentId=concierge", body)
    caller.post(PATH, {"workingMemory": "# Ann, of Bern"})

    copy = caller.post("/api/memory/threads/t/clone", {})
    bare = caller.post("/api/memory/threads/t/clone", {"metadata": {}})

    assert (copy.body["thread"]["metadata"], bare.body["thread"]["metadata"]) == (body["metadata"], {})
    assert caller.get(PATH).body["workingMemory"] == "# Ann, of Bern"


def test_metadata_that_does_not_fit_creates_nothing(caller, agent):
    noting(agent, schema=SCHEMA)
    body = {"resourceId": "alice", "threadId": "t", "metadata": {"workingMemory": {"age": "nine"}}}

    answer = caller.post("/api/memory/threads?agentId=concierge", body)

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "metadata.workingMemory")
    assert not Thread.objects.exists()


def test_who_left_the_team_does_not_read_the_template_of_its_agent(caller, editor, agent):
    add_thread(editor, agent=noting(agent, template="# Secret"))
    caller.post(PATH, {"workingMemory": "# Ann"})
    editor.memberships.update(owner_id="sales")

    answer = caller.get(PATH)

    assert answer.body["workingMemory"] == "# Ann"
    assert answer.body["workingMemoryTemplate"]["content"] == ""
