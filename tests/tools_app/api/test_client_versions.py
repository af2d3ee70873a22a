"""Versions of MCP servers in the API: conditional changes, repeated requests, restoring and who uses a server."""

import pytest

from access_app.role import Role
from agents_app.editing.change_context import change
from jobs_app.models import Job
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

CLIENTS = "/api/stored/mcp-clients"
CLIENT = f"{CLIENTS}/office"
SECRET = {"Authorization": "Bearer hush"}


def body(url="https://mcp.example.org/mcp", **fields):
    return {"name": "Office", "ownerId": "support", "servers": {"office": {"type": "http", "url": url}}, **fields}


@pytest.fixture
def manager():
    return Caller(api_key(member(Role.MANAGER, "support")))


def test_a_change_with_a_stale_etag_is_refused_and_stores_nothing(manager):
    stale = manager.post(CLIENTS, body()).headers["ETag"]
    fresh = manager.patch(CLIENT, {"name": "Bureau"}, If_Match=stale).headers["ETag"]

    refused = [
        manager.patch(CLIENT, {"name": "Desk"}, If_Match=stale),
        manager.delete(CLIENT, If_Match=stale),
        manager.post(f"{CLIENT}/versions/1/restore", {}, If_Match=stale),
    ]

    assert [(answer.status_code, answer.body["code"]) for answer in refused] == [(412, "precondition_failed")] * 3
    assert {answer.headers["ETag"] for answer in refused} == {fresh}
    assert McpServer.objects.get().title == "Bureau"
    assert manager.get(CLIENT, If_None_Match=fresh).status_code == 304
    assert manager.patch(CLIENT, {"name": "Desk"}, If_Match=f"{stale}, {fresh}").status_code == 200
    assert manager.delete(CLIENT, If_Match="*").status_code == 200


def test_a_failure_to_list_tools_is_sent_but_makes_no_change_stale(manager):
    read = manager.post(CLIENTS, body()).headers["ETag"]
    McpServer.objects.update(list_error="The server did not answer.")

    answer = manager.get(CLIENT, If_None_Match=read)

    assert (answer.status_code, answer.body["listError"]) == (200, "The server did not answer.")
    assert manager.get(CLIENT, If_None_Match=answer.headers["ETag"]).status_code == 304
    assert manager.patch(CLIENT, {"name": "Bureau"}, If_Match=read).status_code == 200


def test_another_failure_to_list_tools_makes_no_change_stale(manager):
    manager.post(CLIENTS, body())
    McpServer.objects.update(list_error="The server did not answer.")
    read = manager.get(CLIENT).headers["ETag"]
    McpServer.objects.update(list_error="The server refused the connection.")

    assert manager.patch(CLIENT, {"name": "Bureau"}, If_Match=read).status_code == 200
    assert manager.patch(CLIENT, {"name": "Desk"}, If_Match=read).status_code == 412


def test_another_address_removes_the_error_of_the_earlier_one(manager):
    manager.post(CLIENTS, body())
    McpServer.objects.update(list_error="The server did not answer.")

    renamed = manager.patch(CLIENT, {"name": "Bureau"}).body["listError"]
    moved = manager.patch(CLIENT, {"servers": {"office": {"type": "http", "url": "https://new.example.org/mcp"}}})
    stored = McpServer.objects.get().list_error
    McpServer.objects.update(list_error="The server refused the connection.")
    restored = manager.post(f"{CLIENT}/versions/1/restore", {}).body["listError"]

    assert (renamed, moved.body["listError"], stored, restored) == ("The server did not answer.", None, "", None)


def test_a_repeated_request_creates_one_server_and_one_job(manager):
    first = manager.post(CLIENTS, body(), Idempotency_Key="k")
    again = manager.post(CLIENTS, body(), Idempotency_Key="k")
    other = manager.post(CLIENTS, body(name="Bureau"), Idempotency_Key="k")

    assert (again.status_code, again.body) == (first.status_code, first.body) == (201, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (other.status_code, other.body["code"]) == (422, "key_reused")
    assert (McpServer.objects.count(), Job.objects.count()) == (1, 1)


def test_an_earlier_version_is_restored_as_a_new_one(manager):
    manager.post(CLIENTS, body(prefix="desk"))
    manager.patch(CLIENT, {"name": "Bureau", "prefix": "", "approval": "always", "enabled": False})
    Job.objects.all().delete()

    restored = manager.post(f"{CLIENT}/versions/1/restore", {}, Idempotency_Key="k")
    manager.post(f"{CLIENT}/versions/1/restore", {}, Idempotency_Key="k")

    fields = ("name", "prefix", "approval", "enabled", "versionNumber")
    assert [restored.body[name] for name in fields] == ["Office", "desk", "changes", True, 3]
    assert Job.objects.count() == 1  # a disabled server was not listed
    versions = manager.get(f"{CLIENT}/versions").body["versions"]
    assert [(version["versionNumber"], version["source"]) for version in versions] == [
        (3, "restore"),
        (2, "api"),
        (1, "api"),
    ]
    assert manager.get(f"{CLIENT}/versions/3").body["snapshot"] == versions[2]["snapshot"]


def test_a_restored_address_gets_no_headers_that_were_entered_for_another(manager):
    """A URL of the past may belong to somebody else by now."""
    manager.post(CLIENTS, body("https://old.example.org/mcp"))
    moved = {"servers": {"office": {"type": "http", "url": "https://new.example.org/mcp", "headers": SECRET}}}
    manager.patch(CLIENT, moved)
    manager.patch(CLIENT, {"name": "Bureau"})

    same_address = manager.post(f"{CLIENT}/versions/2/restore", {})
    other_address = manager.post(f"{CLIENT}/versions/1/restore", {})

    assert same_address.body["servers"]["office"]["headers"] == {"Authorization": "••••"}
    assert other_address.body["servers"]["office"]["headers"] == {}
    assert other_address.body["servers"]["office"]["url"] == "https://old.example.org/mcp"
    assert McpServer.objects.get().encrypted_headers == ""


def test_a_version_that_is_not_valid_any_more_is_refused(manager):
    manager.post(CLIENTS, body())
    McpServer.objects.get().versions.update(snapshot={"url": "http://10.0.0.1/mcp"})

    refused = manager.post(f"{CLIENT}/versions/1/restore", {})

    assert (refused.status_code, refused.body["code"]) == (422, "not_restorable")
    assert McpServer.objects.get().url == "https://mcp.example.org/mcp"
    for number in ("2", "x", "99999999999999999999", "-1"):
        assert manager.get(f"{CLIENT}/versions/{number}").status_code == 404
        assert manager.post(f"{CLIENT}/versions/{number}/restore", {}).status_code == 404


def test_only_managers_restore(manager):
    manager.post(CLIENTS, body())
    publisher = Caller(api_key(member(Role.PUBLISHER, "support")))

    assert publisher.post(f"{CLIENT}/versions/1/restore", {}).status_code == 403
    assert publisher.get(f"{CLIENT}/versions/1").status_code == 200


def test_the_agents_that_use_a_server_are_listed_and_named_when_it_is_deleted(manager):
    manager.post(CLIENTS, body())
    tools = {"tools": {"add": {}}}
    used = AgentFactory(id="clerk", owner_id="support", mcp_clients={"other": tools, "office": tools})
    drafted = AgentFactory(id="drafted", owner_id="support", mcp_clients={"office": tools})
    with change(publish=False):
        drafted.edit({"mcp_clients": None})
    AgentFactory(id="similar", owner_id="support", mcp_clients={"office-2": tools}, name="office_")
    AgentFactory(id="foreign", owner_id="legal", mcp_clients={"office": tools})

    users = manager.get(f"{CLIENT}/dependents").body
    McpServer.objects.update(owner_id="")
    shared = manager.get(f"{CLIENT}/dependents").body
    McpServer.objects.update(owner_id="support")

    assert [user["id"] for user in users["dependents"]] == [used.pk, drafted.pk]
    assert (users["total"], users["hidden"]) == (2, 0)
    assert (shared["total"], shared["hidden"]) == (3, 1)
    message = manager.delete(CLIENT).body["message"]
    assert message == "MCP server office deleted. 2 agents run without its tools"


def test_a_repeated_restore_of_a_server_that_moved_to_another_team_is_not_found(manager):
    manager.post(CLIENTS, body())
    manager.post(f"{CLIENT}/versions/1/restore", {}, Idempotency_Key="k")

    McpServer.objects.update(owner_id="sales")

    assert manager.post(f"{CLIENT}/versions/1/restore", {}, Idempotency_Key="k").status_code == 404
