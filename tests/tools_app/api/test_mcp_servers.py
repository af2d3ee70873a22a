"""MCP servers in the API: create, change, list, call, and who may."""

from unittest.mock import Mock

import pytest
from django.db import connections
from django.utils import timezone

from access_app.models import Membership
from access_app.role import Role
from agentcms.errors import KeyInProgress
from agentcms.logs import FaultFilter
from jobs_app.models import Job
from runs_app.events.streams import StreamSlot
from tests.agentcms.observability.test_metrics import read_metric
from tests.api_client import Caller
from tests.factories import UserFactory, api_key, member
from tests.runs_app.factories import RunFactory
from tools_app.api import servers
from tools_app.mcp import calls
from tools_app.mcp.definitions import Definition, Listing
from tools_app.mcp.listing import store_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

CLIENTS = "/api/stored/mcp-clients"
CLIENT = f"{CLIENTS}/office"
URL = "https://mcp.example.org/mcp"
ALL_ROUTES = [
    ("GET", CLIENT),
    ("PATCH", CLIENT),
    ("DELETE", CLIENT),
    ("GET", f"{CLIENT}/dependents"),
    ("GET", f"{CLIENT}/versions"),
    ("GET", f"{CLIENT}/versions/1"),
    ("POST", f"{CLIENT}/versions/1/restore"),
    ("GET", "/api/mcp/v0/servers/office"),
    ("GET", "/api/mcp/office/tools"),
    ("GET", "/api/mcp/office/tools/add"),
    ("POST", "/api/mcp/office/tools/add/execute"),
    ("POST", "/api/mcp/office/tools/add/accept"),
    ("POST", "/api/mcp/office/refresh"),
    ("GET", "/api/mcp/office/resources"),
    ("POST", "/api/mcp/office/resources/read"),
]


def caller(role, owner="support"):
    return Caller(api_key(member(role, owner)))


@pytest.fixture
def manager():
    return caller(Role.MANAGER)


def body(key="office", server=None, **fields):
    server = {"type": "http", "url": URL, **(server or {})}
    return {"name": "Office", "ownerId": "support", "servers": {key: server}, **fields}


def listing(**descriptions):
    return Listing({name: Definition(name, text, {"type": "object"}) for name, text in descriptions.items()}, [])


@pytest.fixture
def office():
    row = McpServer.objects.create(key="office", title="Office", url=URL, owner_id="support")
    store_listing(row.pk, listing(add="Add.", send="Send."))
    return row


def test_a_server_is_created_changed_and_deleted_with_versions(manager):
    created = manager.post(CLIENTS, body(server={"headers": {"Authorization": "Bearer hush"}, "timeout": 5000}))
    changed = manager.patch(CLIENT, {"name": "Bureau", "prefix": "desk", "approval": "always"})
    manager.patch(CLIENT, {"name": "Bureau"})
    versions = manager.get(f"{CLIENT}/versions")

    assert (created.status_code, created.body["status"]) == (201, "published")
    assert created.body["servers"]["office"] == {
        "type": "http",
        "url": URL,
        "timeout": 5000,
        "connectTimeout": 10_000,
        "headers": {"Authorization": "••••"},
    }
    assert (changed.body["name"], changed.body["prefix"], changed.body["approval"]) == ("Bureau", "desk", "always")
    assert [version["versionNumber"] for version in versions.body["versions"]] == [2, 1]
    assert "hush" not in (created.content + changed.content + versions.content).decode()
    assert McpServer.objects.get().headers == {"Authorization": "Bearer hush"}
    assert Job.objects.count() == 1
    assert manager.get(CLIENTS).body["total"] == 1
    assert manager.delete(CLIENT).body["success"]
    assert manager.get(CLIENT).status_code == 404


@pytest.mark.parametrize("server", [{"command": "sh"}, {"args": ["-c", "id"]}, {"type": "stdio", "command": "sh"}])
def test_a_command_in_a_body_is_refused(manager, office, server):
    refused = [
        manager.post(CLIENTS, body("other", server)),
        manager.patch(CLIENT, {"servers": {"office": {"type": "http", "url": URL, **server}}}),
        manager.patch(CLIENT, server | {"command": "sh"}),
    ]

    assert [(answer.status_code, answer.body["code"]) for answer in refused] == [(422, "command_not_allowed")] * 3
    assert McpServer.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"servers": {}}, "servers"),
        ({"servers": []}, "servers"),
        ({"servers": {"a": {"type": "http", "url": URL}, "b": {"type": "http", "url": URL}}}, "servers"),
        ({"servers": {"A b": {"type": "http", "url": URL}}}, "id"),
        ({"servers": {"office": {"type": "ftp", "url": URL}}}, "servers.office.type"),
        ({"servers": {"office": {"type": "http"}}}, "servers.office.url"),
        ({"servers": {"office": {"type": "http", "url": "http://10.0.0.1/"}}}, "servers.office.url"),
        ({"servers": {"office": {"type": "http", "url": URL, "timeout": 10}}}, "servers.office.timeout"),
        ({"servers": {"office": {"type": "http", "url": URL, "headers": {"Host": "x"}}}}, "servers.office.headers"),
        ({"servers": {"office": {"type": "http", "url": URL, "headers": {"A": 1}}}}, "servers.office.headers.A"),
        ({"servers": {"office": {"type": "stdio", "commandKey": "rm"}}}, "servers.office.commandKey"),
        ({"id": "bureau"}, "servers.office"),
        ({"name": " "}, "name"),
        ({"name": "\u200b"}, "name"),
        ({"prefix": "1"}, "prefix"),
        ({"enabled": "yes"}, "enabled"),
    ],
)
def test_invalid_bodies_are_refused_at_their_path(manager, fields, path):
    refused = manager.post(CLIENTS, body() | fields)

    assert refused.status_code == 400
    assert path in [issue["field"] for issue in refused.body["issues"]]
    assert not McpServer.objects.exists()


def test_all_issues_are_reported_at_once(manager):
    server = {"type": "http", "url": "http://10.0.0.1/", "timeout": 10, "headers": {"Host": "x"}}
    fields = {"enabled": "yes", "prefix": "1", "servers": {"office": server}}
    paths = ["enabled", "prefix", "servers.office.headers", "servers.office.timeout", "servers.office.url"]

    new = manager.post(CLIENTS, body() | fields | {"id": "bureau"})
    manager.post(CLIENTS, body())
    changed = manager.patch(CLIENT, fields)
    untyped = manager.patch(CLIENT, {"prefix": "1", "servers": {"office": {**server, "type": "ftp"}}})

    assert sorted(issue["field"] for issue in new.body["issues"]) == sorted([*paths, "servers.office"])
    assert sorted(issue["field"] for issue in changed.body["issues"]) == paths
    assert [issue["field"] for issue in untyped.body["issues"]] == [
        *("servers.office.type", "servers.office.timeout", "prefix")
    ]


def test_the_tools_of_a_server_are_listed_once_it_is_enabled(manager):
    manager.post(CLIENTS, body(enabled=False))
    jobs = [Job.objects.count()]
    for fields in ({"name": "Bureau"}, {"enabled": True}, {"prefix": "desk"}):
        manager.patch(CLIENT, fields)
        jobs.append(Job.objects.count())

    assert jobs == [0, 0, 1, 1]


def test_a_client_is_sent_back_as_it_was_read_and_keeps_its_headers(manager):
    read = manager.post(CLIENTS, body(server={"headers": {"Authorization": "Bearer hush", "X-Team": "a"}})).body
    read["servers"]["office"]["headers"]["X-Team"] = "b"

    answer = manager.patch(CLIENT, read)

    assert (answer.status_code, answer.body.get("warnings")) == (200, None)
    assert McpServer.objects.get().headers == {"Authorization": "Bearer hush", "X-Team": "b"}


def test_stored_headers_are_not_sent_to_another_address(manager):
    manager.post(CLIENTS, body(server={"headers": {"Authorization": "Bearer hush"}}))
    moved = {"servers": {"office": {"type": "http", "url": "https://other.example.org/mcp"}}}

    refused = manager.patch(CLIENT, moved)
    moved["servers"]["office"]["headers"] = {"Authorization": "••••"}
    masked = manager.patch(CLIENT, moved)
    moved["servers"]["office"]["headers"] = None
    accepted = manager.patch(CLIENT, moved)

    for answer in (refused, masked):
        assert answer.body["issues"][0]["field"] == "servers.office.headers"
    assert accepted.body["servers"]["office"]["headers"] == {}


@pytest.mark.parametrize(("method", "path"), ALL_ROUTES)
def test_a_stranger_gets_the_answer_of_a_server_that_does_not_exist(office, method, path):
    stranger = caller(Role.MANAGER, "legal")

    hidden = stranger.call(method, path, {} if method != "GET" else None)
    missing = stranger.call(method, path.replace("office", "absent"), {} if method != "GET" else None)

    assert hidden.status_code == missing.status_code == 404
    assert hidden.body == {**missing.body, "error": missing.body["error"].replace("absent", "office")}
    assert stranger.get(CLIENTS).body["total"] == 0
    assert stranger.get("/api/mcp/v0/servers").body["total_count"] == 0


def test_only_managers_change_servers_and_only_staff_the_shared_ones(office):
    for answer in (
        caller(Role.PUBLISHER).patch(CLIENT, {"name": "Ours"}),
        caller(Role.PUBLISHER).delete(CLIENT),
        caller(Role.PUBLISHER).post("/api/mcp/office/refresh"),
        caller(Role.VIEWER).post("/api/mcp/office/tools/add/execute", {}),
        caller(Role.MANAGER).post(CLIENTS, body("mine", ownerId="legal")),
        caller(Role.MANAGER).patch(CLIENT, {"ownerId": "legal"}),
        caller(Role.MANAGER, "").post(CLIENTS, body("mine", ownerId="")),
    ):
        assert answer.status_code == 403, answer.body
    staff = Caller(api_key(UserFactory(is_staff=True, is_superuser=True)))
    assert staff.post(CLIENTS, body("mine", ownerId="")).status_code == 201
    assert caller(Role.VIEWER, "legal").get("/api/mcp/v0/servers/mine").status_code == 200


def test_tools_are_listed_and_a_change_is_accepted_by_its_hash(manager, office):
    McpServer.objects.create(key="attic", title="Attic", url=URL, owner_id="support")
    store_listing(office.pk, listing(add="Add more."))

    tool = manager.get("/api/mcp/office/tools/add").body
    stale = manager.post("/api/mcp/office/tools/add/accept", {"hash": "0" * 64})
    refused = manager.post("/api/mcp/office/tools/add/execute", {"data": {}})
    accepted = manager.post("/api/mcp/office/tools/add/accept", {"hash": tool["hash"]})

    assert tool["differences"] == [{"part": "description", "before": "Add.", "after": "Add more."}]
    assert (stale.status_code, stale.body["code"]) == (422, "definition_changed")
    assert (refused.status_code, refused.body["code"]) == (409, "definition_changed")
    assert accepted.body["changedTools"] == []
    assert [item["isAccepted"] for item in manager.get("/api/mcp/office/tools").body["tools"]] == [True]
    assert manager.post("/api/mcp/office/tools/add/accept", {}).status_code == 400
    assert manager.get("/api/mcp/office/tools/none").status_code == 404


def test_the_list_of_tools_reads_each_definition_once(manager, monkeypatch):
    row = McpServer.objects.create(key="office", title="Office", url=URL, owner_id="support")
    store_listing(row.pk, listing(**{f"tool{number}": "Text." for number in range(50)}))
    read = Mock(wraps=Definition.from_json)
    monkeypatch.setattr(Definition, "from_json", read)

    answer = manager.get("/api/mcp/office/tools")

    assert len(answer.body["tools"]) == 50
    assert read.call_count == 2 * 50  # as it was listed, and as it was accepted


def test_an_editor_calls_a_tool(http_server):
    tools = {"add": Definition("add", "", {}), "fail": Definition("fail", "", {})}
    tools["delete_everything"] = Definition("delete_everything", "", {}, "", {"destructiveHint": True})
    tools["shred"] = Definition("shred", "", {})
    store_listing(http_server.pk, Listing(tools, []))
    editor = caller(Role.EDITOR)

    called = editor.post("/api/mcp/office/tools/add/execute", {"data": {"a": 2, "b": 3}})
    failed = editor.post("/api/mcp/office/tools/fail/execute", {})
    jobs = Job.objects.count()
    gone = editor.post("/api/mcp/office/tools/shred/execute", {})
    dangerous = editor.post("/api/mcp/office/tools/delete_everything/execute", {})
    invalid = editor.post("/api/mcp/office/tools/add/execute", {"data": []})

    misspelled = {"data": {"a": 2, "b": 3}, "dat": {}}
    warned = editor.post("/api/mcp/office/tools/add/execute", misspelled)
    refused = editor.post("/api/mcp/office/tools/add/execute?strict=true", misspelled)

    assert called.body == {"result": 5}
    message = "This name is unknown. Did you mean data?"
    assert warned.body["warnings"] == [{"field": "dat", "key": "dat", "message": message}]
    assert (refused.status_code, refused.body["issues"]) == (400, [{"field": "dat", "message": message}])
    assert (failed.status_code, failed.body["code"]) == (424, "tool_failed")
    assert (gone.status_code, Job.objects.count()) == (424, jobs + 1)  # the tools are listed again
    assert (dangerous.status_code, dangerous.body["code"]) == (409, "approval_required")
    assert invalid.status_code == 400


def test_a_call_notes_that_it_is_sent_once_it_has_a_connection(http_server, monkeypatch):
    store_listing(http_server.pk, listing(add="Add."))
    note = Mock(side_effect=KeyInProgress)
    monkeypatch.setattr(servers, "note_sent", note)

    def call():
        return caller(Role.EDITOR).post("/api/mcp/office/tools/add/execute", {"data": {"a": 2, "b": 3}})

    assert call().body["code"] == "in_progress"
    assert note.call_count == 1

    McpServer.objects.update(url="http://127.0.0.1:9/mcp")
    assert call().body["code"] == "tool_failed"
    assert note.call_count == 1


def test_an_editor_of_another_team_calls_no_tool(office):
    viewer = member(Role.VIEWER, "support")
    Membership.objects.create(user=viewer, owner_id="legal", role=Role.EDITOR)

    answer = Caller(api_key(viewer)).post("/api/mcp/office/tools/add/execute", {"data": {}})

    assert (answer.status_code, answer.body["code"]) == (403, "forbidden")


def test_a_result_may_have_256_kb_in_any_alphabet(http_server):
    store_listing(http_server.pk, listing(repeat="Repeat."))
    editor = caller(Role.EDITOR)

    def call(times):
        return editor.post("/api/mcp/office/tools/repeat/execute", {"data": {"text": "д", "times": times}})

    assert call(2**17).body == {"result": "д" * 2**17}
    assert "too large" in call(2**17 + 1).body["error"]


def test_a_call_without_a_run_has_the_limits_of_a_run(http_server, settings):
    settings.RUN_STREAMS_PER_USER = settings.RUNS_PER_USER = 1
    store_listing(http_server.pk, listing(add="Add."))
    user = member(Role.EDITOR)
    editor, other = Caller(api_key(user)), caller(Role.EDITOR)

    def call(who):
        answer = who.post("/api/mcp/office/tools/add/execute", {"data": {"a": 2, "b": 3}})
        return answer.status_code, answer.body.get("code") or answer.body["result"]

    with StreamSlot(user):
        with_a_stream = call(editor)
        of_another = call(other)
    run = RunFactory(requested_by=user, status="running", finished_at=None, lease_until=timezone.now())
    with_a_run = call(editor)
    run.delete()

    assert (with_a_stream, with_a_run) == ((429, "too_many_streams"), (429, "too_many_runs"))
    assert of_another == call(editor) == call(editor) == (200, 5)


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_call_holds_no_database_connection(http_server, monkeypatch):
    store_listing(http_server.pk, listing(add="Add."))
    wrapper, open_connections = connections["default"], []

    async def call(*arguments):
        open_connections.append(wrapper.connection)

    monkeypatch.setattr(calls, "call_mcp_tool", call)
    caller(Role.EDITOR).post("/api/mcp/office/tools/add/execute", {})

    assert open_connections == [None]


def test_calls_without_a_run_are_counted_with_those_of_runs(http_server, client):
    tools = {name: Definition(name, "", {}) for name in ("add", "fail")}
    store_listing(http_server.pk, Listing(tools, []))
    client.force_login(UserFactory(is_staff=True))

    def counts():
        name = "agentcms_mcp_calls_total"
        return [read_metric(client, name, server="office", outcome=outcome) for outcome in ("succeeded", "failed")]

    before = counts()
    editor = caller(Role.EDITOR)
    editor.post("/api/mcp/office/tools/add/execute", {"data": {"a": 2, "b": 3}})
    editor.post("/api/mcp/office/tools/fail/execute", {})

    assert [after - count for after, count in zip(counts(), before, strict=True)] == [1, 1]


def test_a_refresh_is_a_job_and_resources_are_not_supported(manager, office, caplog):
    job = manager.post("/api/mcp/office/refresh")

    assert (job.status_code, job.body["kind"]) == (202, "list_mcp_tools")
    assert manager.get("/api/mcp/office/resources").status_code == 501
    assert [*filter(FaultFilter().filter, caplog.records)] == []  # nothing is wrong
    assert manager.get("/api/mcp/v0/servers").body["servers"][0]["id"] == "office"


def test_a_team_has_a_limited_number_of_servers(manager, office, settings):
    settings.MCP_SERVERS_PER_TEAM = 1
    superuser = Caller(api_key(UserFactory(is_superuser=True, is_staff=True)))
    superuser.post(CLIENTS, body("shared", ownerId="")).body["id"]

    added = manager.post(CLIENTS, body("second"))
    moved = superuser.patch(f"{CLIENTS}/shared", {"ownerId": "support"})

    assert [(answer.status_code, answer.body["code"]) for answer in (added, moved)] == [
        (429, "mcp_server_quota_exceeded")
    ] * 2
    assert "support has 1 MCP servers" in added.body["error"]
    assert "Delete one" in added.body["error"]
    assert [*McpServer.objects.order_by("key").values_list("key", "owner_id")] == [
        ("office", "support"),
        ("shared", ""),
    ]
    assert manager.patch(CLIENT, {"name": "Bureau", "ownerId": "support"}).status_code == 200


def test_unknown_names_are_warnings_and_errors_of_a_strict_request(manager):
    sent = body(server={"timout": 5000}, enabld=False)
    refused = manager.post(f"{CLIENTS}?strict=true", sent)
    created = manager.post(CLIENTS, sent)
    read = manager.get(CLIENT).body
    again = manager.patch(CLIENT, {**read, "servers": {"office": {"type": "http", "url": URL}}})
    changed = manager.patch(CLIENT, {"servers": {"office": {"type": "http", "url": URL, "header": {}}}})

    assert refused.status_code == 400
    assert [issue["field"] for issue in refused.body["issues"]] == ["enabld", "servers.office.timout"]
    assert "Did you mean enabled?" in refused.body["issues"][0]["message"]
    assert [warning["field"] for warning in created.body["warnings"]] == ["enabld", "servers.office.timout"]
    assert "warnings" not in again.body
    assert [warning["field"] for warning in changed.body["warnings"]] == ["servers.office.header"]
