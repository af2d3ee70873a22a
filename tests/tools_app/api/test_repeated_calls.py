"""Calls of MCP tools, and other requests about a server, with an `Idempotency-Key`."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from access_app.models import Membership
from access_app.role import Role
from agentcms.errors import ApiError
from agents_app.api import idempotency
from agents_app.api.idempotent_calls import note_sent
from agents_app.models import IdempotencyRecord
from jobs_app.models import Job
from tests.tools_app.api.test_mcp_servers import URL, caller, listing
from tools_app.api import servers
from tools_app.mcp.listing import store_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

EXECUTE = "/api/mcp/office/tools/add/execute"
BODY = {"data": {"a": 2}}


@pytest.fixture(autouse=True)
def office():
    row = McpServer.objects.create(key="office", title="Office", url=URL, owner_id="support")
    store_listing(row.pk, listing(add="Add."))
    return row


@pytest.fixture
def editor():
    return caller(Role.EDITOR)


@pytest.fixture
def tool(monkeypatch):
    """Replace the call of a tool. Return the calls, and what else each does."""

    class Tool:
        calls, act = 0, None

    def execute(*arguments):
        Tool.calls += 1
        if Tool.act is not None:
            Tool.act()
        return {"call": Tool.calls}

    monkeypatch.setattr(servers, "execute", execute)
    monkeypatch.setattr(idempotency, "LOCK_TIMEOUT", 0)
    return Tool


def call(editor, body=BODY):
    answer = editor.post(EXECUTE, body, Idempotency_Key="k")
    return answer.status_code, answer.body.get("code") or answer.body["result"]


def test_a_repeated_call_does_not_call_the_tool_again(editor, tool):
    assert [call(editor) for _ in range(3)] == [(200, {"call": 1})] * 3
    assert call(editor, {"data": {"a": 3}}) == (422, "key_reused")
    assert tool.calls == 1
    assert editor.post(EXECUTE, BODY).body == {"result": {"call": 2}}


def test_a_repeat_of_a_call_in_progress_is_a_conflict(editor, tool):
    repeats = []
    tool.act = lambda: repeats.append(editor.post(EXECUTE, BODY, Idempotency_Key="k"))

    assert call(editor) == (200, {"call": 1})
    (repeat,) = repeats
    assert (repeat.status_code, repeat.body["code"], repeat.headers["Retry-After"]) == (409, "in_progress", "1")


def test_a_repeat_waits_for_the_response(editor, tool, monkeypatch):
    monkeypatch.setattr(idempotency, "LOCK_TIMEOUT", 5)
    call(editor)
    IdempotencyRecord.objects.update(status=0)
    monkeypatch.setattr(
        "agents_app.api.idempotent_calls.time.sleep", lambda seconds: IdempotencyRecord.objects.update(status=200)
    )

    assert call(editor) == (200, {"call": 1})


@pytest.mark.parametrize("error", [ApiError(424, "It failed.", "tool_failed"), KeyboardInterrupt()])
def test_a_call_that_fails_before_it_is_sent_frees_the_key(editor, tool, error):
    assert call_failing(editor, tool, error) == "tool_failed"

    assert not IdempotencyRecord.objects.exists()
    assert call(editor) == (200, {"call": 2})


@pytest.mark.parametrize(
    ("error", "repeated"),
    [
        (ApiError(424, "It failed.", "tool_failed"), (424, "tool_failed")),
        (KeyboardInterrupt(), (409, "outcome_unknown")),
    ],
)
def test_a_call_that_fails_after_it_was_sent_is_not_sent_again(editor, tool, error, repeated):
    call_failing(editor, tool, error, note_sent)

    assert [call(editor), call(editor)] == [repeated] * 2
    assert tool.calls == 1


def call_failing(editor, tool, error, before=lambda: None):
    """Call a tool that fails with an error. Return the code of the response."""

    def fail():
        before()
        raise error

    tool.act = fail
    try:
        return call(editor)[1]
    except KeyboardInterrupt:
        return "tool_failed"
    finally:
        tool.act = None


def test_a_call_whose_process_died_before_it_was_sent_is_repeated_after_the_time_of_a_call(editor, tool):
    die_in_call(editor, 0)

    assert call(editor) == (200, {"call": 2})
    assert call(editor) == (200, {"call": 2})


def test_a_call_whose_process_died_after_it_was_sent_is_not_sent_again(editor, tool):
    die_in_call(editor, IdempotencyRecord.SENT)

    assert call(editor) == (409, "outcome_unknown")
    assert tool.calls == 1


def die_in_call(editor, status):
    """Leave a record of a call with a status that is no response, after the time that a call may take."""
    call(editor)
    limit = timezone.now() - timedelta(seconds=servers.max_call_seconds())
    IdempotencyRecord.objects.update(status=status, created_at=limit + timedelta(seconds=10))
    assert call(editor) == (409, "in_progress")
    IdempotencyRecord.objects.update(created_at=limit)


def test_a_call_that_a_repeat_has_replaced_is_not_sent(editor, tool):
    def give_up():
        IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=1))
        tool.act = None
        assert call(editor) == (200, {"call": 2})
        note_sent()

    tool.act = give_up

    assert call(editor) == (409, "in_progress")
    assert call(editor) == (200, {"call": 2})


def test_a_late_response_does_not_replace_that_of_the_repeat(editor, tool):
    def give_up():
        IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=1))
        tool.act = None
        assert call(editor) == (200, {"call": 2})

    tool.act = give_up

    assert call(editor)[0] == 200
    assert call(editor) == (200, {"call": 2})


@pytest.mark.parametrize(("change", "status"), [({"role": "viewer"}, 403), ({"owner_id": "legal"}, 404)])
def test_a_repeated_call_needs_the_rights_of_the_first(editor, tool, change, status):
    call(editor)
    Membership.objects.update(**change)

    assert call(editor)[0] == status


@pytest.mark.django_db(transaction=True)
def test_a_call_holds_no_transaction(editor, tool):
    states = []
    tool.act = lambda: states.append((connection.in_atomic_block, IdempotencyRecord.objects.count()))

    call(editor)

    assert states == [(False, 1)]


def test_a_repeated_refresh_and_a_repeated_acceptance_have_the_first_response(office):
    manager = caller(Role.MANAGER)
    store_listing(office.pk, listing(add="Add more."))
    tool = manager.get("/api/mcp/office/tools/add").body
    requests = [("/api/mcp/office/refresh", None), ("/api/mcp/office/tools/add/accept", {"hash": tool["hash"]})]
    first = [manager.post(path, body, Idempotency_Key=path).body for path, body in requests]
    Job.objects.update(state=Job.State.DONE)
    store_listing(office.pk, listing(add="Add all."))

    assert [manager.post(path, body, Idempotency_Key=path).body for path, body in requests] == first
    assert Job.objects.count() == 1
