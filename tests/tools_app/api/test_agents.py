"""The field of an agent with the tools of MCP servers, in the API."""

import pytest
from django.utils import timezone

from agents_app.models import Agent
from tests.agent_exchange import import_file, record
from tests.api_client import AGENTS, MODEL, Caller, agent_path
from tests.factories import api_key, member
from tools_app.mcp.cached_servers import server_table
from tools_app.mcp.definitions import Definition, Listing
from tools_app.mcp.listing import store_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

AGENT = agent_path()


@pytest.fixture
def caller():
    return Caller(api_key(member("publisher")))


@pytest.fixture
def office():
    row = McpServer.objects.create(key="office", title="Office", url="https://mcp.example.org/mcp")
    tools = {name: Definition(name, "", {"type": "object"}) for name in ("add", "send")}
    store_listing(row.pk, Listing(tools, []))
    return McpServer.objects.get()


def test_a_server_without_tools_is_stored_with_all_of_them(caller, office):
    created = caller.create(mcpClients={"office": {}})

    tools = created.body["mcpClients"]["office"]["tools"]
    assert created.status_code == 201
    assert tools == {name: {"hash": item.hash} for name, item in office.definitions.items()}
    assert created.body["warnings"] == []


def test_a_save_in_a_shell_stores_all_tools_of_a_server_too(caller, office):
    caller.create()
    agent = Agent.objects.get()
    agent.mcp_clients = {"office": {}}
    agent.save()

    stored = Agent.objects.get()
    assert stored.mcp_clients["office"]["tools"] == {
        name: {"hash": item.hash} for name, item in office.definitions.items()
    }
    assert stored.head_version.snapshot["mcpClients"] == stored.mcp_clients == agent.mcp_clients


def test_a_save_of_other_fields_accepts_no_definition(caller, office):
    caller.create()
    Agent.objects.update_unguarded(mcp_clients={"office": {}})
    agent = Agent.objects.get()
    agent.name = "Porter"
    agent.save()

    assert Agent.objects.get().mcp_clients == {"office": {}}


def test_a_list_that_another_process_stored_just_now_is_used(caller, office):
    tools = office.tools
    store_listing(office.pk, Listing({}, []))
    server_table.get()  # which this process keeps for a second
    McpServer.objects.filter(pk=office.pk).update(tools=tools, updated_at=timezone.now())  # without a signal

    created = caller.create(mcpClients={"office": {}})
    edited = caller.patch(AGENT, {"mcpClients": {"office": {"tools": {"add": {}}}}})

    assert set(created.body["mcpClients"]["office"]["tools"]) == {"add", "send"}
    assert edited.body["mcpClients"]["office"]["tools"]["add"]["hash"] == office.definitions["add"].hash
    assert created.body["warnings"] == []


def test_an_equal_edit_makes_no_version(caller, office):
    selection = {"office": {"tools": {"add": {"requireApproval": True, "description": "Add prices."}}}}
    caller.create(mcpClients=selection)

    caller.patch(AGENT, {"mcpClients": selection})
    again = caller.patch(AGENT, {"mcpClients": caller.get(AGENT).body["mcpClients"]})

    assert again.body["activeVersionNumber"] == 1
    stored = again.body["mcpClients"]["office"]["tools"]["add"]
    assert stored == {**selection["office"]["tools"]["add"], "hash": office.definitions["add"].hash}


def test_missing_changed_and_disabled_tools_are_warned_of(caller, office):
    caller.create(mcpClients={"office": {}, "gone": {"tools": {"copy": {}}}})
    store_listing(office.pk, Listing({"add": Definition("add", "New words.", {"type": "object"})}, []))

    warnings = caller.get(AGENT).body["warnings"]

    assert [(warning["field"], warning["key"], warning["message"]) for warning in warnings] == [
        ("mcpClients", "gone_copy", "No MCP tool is registered as 'gone_copy'."),
        ("mcpClients", "office_add", "The MCP tool 'office_add' changed on its server. Accept the change to use it."),
        ("mcpClients", "office_send", "The MCP server 'Office' no longer has the tool 'send'."),
    ]
    office.refresh_from_db()
    office.is_enabled = False
    office.save()
    messages = {warning["message"] for warning in caller.get(AGENT).body["warnings"]}
    assert "The MCP server 'Office' is disabled." in messages


def test_a_tool_with_the_name_of_another_is_warned_of(caller, office):
    McpServer.objects.filter(pk=office.pk).update(prefix="desk")
    desk = McpServer.objects.create(key="desk", title="Desk", url="https://mcp.example.org/desk")
    store_listing(desk.pk, Listing({"add": Definition("add", "", {"type": "object"})}, []))

    warnings = caller.create(mcpClients={"office": {}, "desk": {}}).body["warnings"]

    message = "The MCP tool 'office_add' has the same name for models as 'desk_add'."
    assert [(warning["key"], warning["message"]) for warning in warnings] == [
        ("office_add", f"{message} Change the prefix of one of their servers.")
    ]


def test_a_strict_write_refuses_a_missing_tool_at_its_path(caller, office):
    body = {"id": "concierge", "name": "Concierge", "instructions": "", "model": MODEL}
    body["mcpClients"] = {"office": {"tools": {"copy": {}}}}

    refused = caller.post(f"{AGENTS}?strict=true", body)

    assert refused.status_code == 400
    assert refused.body["issues"][0]["field"] == "mcpClients.office.tools.copy"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([], "mcpClients"),
        ({"office": []}, "mcpClients.office"),
        ({"office": {"tools": []}}, "mcpClients.office.tools"),
        ({"office": {"tools": {"add": True}}}, "mcpClients.office.tools.add"),
        ({"office": {"tools": {"add": {"requireApproval": 1}}}}, "mcpClients.office.tools.add.requireApproval"),
        ({"office": {"tools": {"add": {"hash": "x"}}}}, "mcpClients.office.tools.add.hash"),
        ({"office": {"tools": {"add": {"description": 5}}}}, "mcpClients.office.tools.add.description"),
        ({" ": {}}, "mcpClients. "),
    ],
)
def test_invalid_values_are_refused_at_their_path(caller, value, path):
    refused = caller.create(mcpClients=value)

    assert refused.status_code == 400
    assert refused.body["issues"][0]["field"] == path


PROGRAMS = [
    {"command": "sh", "args": ["-c", "id"]},
    {"argv": ["sh"]},
    {"servers": {"x": {"type": "stdio", "command": "sh"}}},
    {"tools": {"add": {"args": ["-c", "id"]}}},
]


@pytest.mark.parametrize("choice", PROGRAMS)
@pytest.mark.parametrize("query", ["", "?strict=true"])
def test_a_command_is_422_in_each_body_of_an_agent(caller, choice, query):
    caller.create()
    body = {"name": "Concierge", "instructions": "", "model": MODEL, "mcpClients": {"office": choice}}

    refused = [caller.post(f"{AGENTS}{query}", {**body, "id": "new"}), caller.patch(f"{AGENT}{query}", body)]

    assert [(answer.status_code, answer.body["code"]) for answer in refused] == [(422, "command_not_allowed")] * 2
    assert {answer.body["issues"][0]["field"] for answer in refused} == {"mcpClients.office"}
    assert Agent.objects.get().mcp_clients is None


def test_a_tool_may_have_the_name_command(caller):
    created = caller.create(mcpClients={"office": {"tools": {"command": {}, "args": {}}}})

    assert (created.status_code, {*created.body["mcpClients"]["office"]["tools"]}) == (201, {"command", "args"})


def test_a_command_in_the_draft_of_a_record_is_refused(caller):
    draft = {"name": "X", "instructions": "", "model": MODEL, "mcpClients": {"x": {"argv": ["sh"]}}}

    (refused,) = import_file(caller, [{**record("hostile"), "draft": draft}])["records"]

    assert (refused["action"], refused["code"]) == ("refuse", "command_not_allowed")
    assert refused["reason"].startswith("draft.mcpClients.x: ")


def test_null_and_an_export_keep_the_field(caller, office):
    caller.create(mcpClients={"office": {}})
    before = caller.get(AGENT).body["mcpClients"]

    duplicate = caller.post(f"{AGENT}/duplicate", {"id": "copy"})
    reset = caller.patch(AGENT, {"mcpClients": None})

    assert duplicate.body["mcpClients"] == before
    assert "mcpClients" not in reset.body


def test_an_import_with_a_command_is_refused(caller):
    result = import_file(caller, [record("hostile", mcpClients={"x": {"command": "sh"}})])

    assert [row["action"] for row in result["records"]] == ["refuse"]
    (refused,) = result["records"]
    assert refused["code"] == "command_not_allowed"
    assert refused["reason"].startswith("mcpClients.x: Commands are not taken")
    assert not Agent.objects.exists()


def test_an_import_does_not_warn_of_tools_of_the_own_team(caller, office):
    McpServer.objects.update(owner_id="support")
    own, foreign = ({**record(key, mcpClients={"office": {}}), "ownerId": key} for key in ("support", "python"))
    superuser = Caller(api_key(member(is_superuser=True)))

    imported = import_file(superuser, [own, foreign])

    warnings_by_id = {outcome["id"]: outcome.get("warnings", ()) for outcome in imported["records"]}
    keys = {key: [warning["key"] for warning in warnings] for key, warnings in warnings_by_id.items()}
    assert keys == {"support": [], "python": ["office_*"]}
