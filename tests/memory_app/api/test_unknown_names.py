"""Unknown names in the requests of conversations."""

import pytest

from memory_app.models import Participant, Thread
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

THREADS = "/api/memory/threads"
THREAD = f"{THREADS}/trip"


@pytest.fixture
def thread(caller):
    caller.post(THREADS, {"threadId": "trip", "resourceId": "alice"})
    return Thread.objects.get(key="trip")


def names(answer):
    return [(item["field"], item["message"].removeprefix("This name is unknown. ")) for item in answer["warnings"]]


def test_a_misspelled_key_of_a_new_thread_is_a_warning(caller):
    answer = caller.post(f"{THREADS}?agnetId=concierge", {"resorceId": "alice", "title": "Trip"})

    assert answer.status_code == 201
    assert names(answer.body) == [
        ("agnetId", "Did you mean agentId?"),
        ("resorceId", "Did you mean resourceId?"),
    ]


def test_strict_creates_no_thread(caller):
    refused = caller.post(f"{THREADS}?strict=true", {"resorceId": "alice"})

    assert (refused.status_code, [issue["field"] for issue in refused.body["issues"]]) == (400, ["resorceId"])
    assert not Thread.objects.exists()


@pytest.mark.parametrize(
    ("path", "body", "unknown"),
    [
        ("", {"titel": "Trip"}, [("titel", "Did you mean title?")]),
        (
            "/clone",
            {"titel": "Copy", "options": {"mesageLimit": 1, "messageFilter": {"startdat": None}}},
            [
                ("titel", "Did you mean title?"),
                ("options.mesageLimit", "Did you mean messageLimit?"),
                ("options.messageFilter.startdat", "Did you mean startDate?"),
            ],
        ),
        ("/transfer", {"resourceId": "bob", "resorceId": "carl"}, [("resorceId", "Did you mean resourceId?")]),
        ("/working-memory", {"workingMemory": "Blue", "resource": "bob"}, [("resource", "Did you mean resourceId?")]),
    ],
)
def test_misspelled_keys_of_a_thread_are_warnings_or_errors(caller, thread, path, body, unknown):
    send = caller.post if path else caller.patch

    refused = send(f"{THREAD}{path}?strict=true", body)
    answer = send(f"{THREAD}{path}", body)

    assert refused.status_code == 400
    assert [issue["field"] for issue in refused.body["issues"]] == [field for field, _ in unknown]
    assert answer.status_code == 200
    assert names(answer.body) == unknown


def test_a_misspelled_key_of_a_participant_is_a_warning():
    agent, user = AgentFactory(owner_id="support"), member("editor", "support")
    add_thread(user, agent=agent, agent_key=agent.pk, agent_owner_id="support")
    colleague = member("editor", "support")

    answer = Caller(api_key(user)).post(f"{THREADS}/t/participants", {"username": colleague.username, "role": "Nurse"})

    assert (answer.status_code, [field for field, _ in names(answer.body)]) == (201, ["role"])
    assert Participant.objects.get().functional_role == ""


def test_misspelled_keys_beside_messages_are_warnings(caller, thread):
    message = {"id": "m", "threadId": "trip", "resourceId": "alice", "role": "user", "content": "Hi"}

    saved = caller.post("/api/memory/save-messages", {"messages": [message], "message": []})
    refused = caller.post("/api/memory/messages/delete?strict=true", {"messageIds": ["m"], "threadId": "trip"})

    assert names(saved.body) == [("message", "Did you mean messages?")]
    assert refused.status_code == 400
    assert thread.messages.count() == 1
    deleted = caller.post("/api/memory/messages/delete", {"messageIds": ["m"], "threadId": "trip"})
    assert [field for field, _ in names(deleted.body)] == ["threadId"]


@pytest.mark.parametrize("path", [THREADS, f"{THREAD}/messages"])
def test_an_unknown_parameter_of_a_list_is_a_warning_or_an_error(caller, thread, path):
    answer = caller.get(f"{path}?resourceId=alice&perPge=1")

    assert names(answer.body) == [("perPge", "Did you mean perPage?")]
    assert caller.get(f"{path}?resourceId=alice&perPge=1&strict=true").status_code == 400


def test_a_thread_can_be_sent_back_as_it_was_read(caller, thread):
    read = caller.get(THREAD).body

    answer = caller.patch(f"{THREAD}?strict=true&agentId=&resourceId=alice", {**read, "title": "Trip"})

    assert (answer.status_code, answer.body["title"]) == (200, "Trip")
    assert "warnings" not in answer.body
