"""Actions on MCP servers and ACP agents that others delete, or move to another team, after the rights were checked."""

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from access_app.role import Role
from tests.api_client import Caller
from tests.factories import UserFactory, api_key, member
from tools_app.admin.mcp_servers import McpServerAdmin
from tools_app.api import servers
from tools_app.mcp.definitions import Definition, Listing
from tools_app.mcp.listing import store_listing
from tools_app.models import AcpAgent, McpServer

pytestmark = pytest.mark.django_db

CHANGES = {"deleted": lambda rows: rows.all().delete(), "moved": lambda rows: rows.update(owner_id="legal")}
changed_meanwhile = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@pytest.fixture
def manager():
    return member(Role.MANAGER, "support", is_staff=True)


@pytest.fixture
def office():
    """Return a server with a changed tool that nobody has accepted."""
    row = McpServer.objects.create(key="office", title="Office", owner_id="support", url="https://mcp.example.org/mcp")
    for text in ("Add.", "Add more."):
        store_listing(row.pk, Listing({"add": Definition("add", text, {"type": "object"})}, []))
    row.refresh_from_db()
    return row


def is_unchanged():
    """Return whether the server is gone, or as it was."""
    row = McpServer.objects.first()
    return row is None or (row.is_enabled, row.changed_tools, row.last_version_number) == (True, ["add"], 1)


@pytest.mark.parametrize(
    ("action", "name"),
    [("switch", "deleted"), ("switch", "moved"), ("accept", "deleted"), ("accept", "moved"), ("restore", "deleted")],
)
def test_the_admin_changes_no_server_that_the_user_no_longer_may_change(
    client, manager, office, monkeypatch, action, name
):
    checked = McpServerAdmin.get_changeable

    def check_and_change(*args):
        row = checked(*args)
        CHANGES[name](McpServer.objects)
        return row

    monkeypatch.setattr(McpServerAdmin, "get_changeable", check_and_change)
    client.force_login(manager)
    data = {"tool": "add", "hash": office.definitions["add"].hash, "version": "1"}

    answer = client.post(reverse(f"admin:tools_app_mcpserver_{action}", args=[office.pk]), data)

    (message,) = get_messages(answer.wsgi_request)
    assert str(message) == "The MCP server was deleted meanwhile, or moved to another team."
    assert is_unchanged()


@changed_meanwhile
def test_the_action_of_the_list_changes_no_server_that_was_deleted_or_moved(
    client, manager, office, monkeypatch, change
):
    editable_by = McpServer.editable_by

    def check_and_change(row, user):
        is_editable = editable_by(row, user)
        monkeypatch.setattr(McpServer, "editable_by", editable_by)
        change(McpServer.objects)
        return is_editable

    client.force_login(manager)
    monkeypatch.setattr(McpServer, "editable_by", check_and_change)

    answer = client.post(
        reverse("admin:tools_app_mcpserver_changelist"), {"action": "disable", "_selected_action": [office.pk]}
    )

    texts = [str(message) for message in get_messages(answer.wsgi_request)]
    assert texts == ["The MCP server was deleted meanwhile, or moved to another team.", "0 of 1 server disabled."]
    assert is_unchanged()


@changed_meanwhile
def test_the_api_accepts_no_definition_of_a_deleted_or_moved_server(manager, office, monkeypatch, change):
    get_definition = servers.get_definition

    def find_and_change(row, name):
        definition = get_definition(row, name)
        change(McpServer.objects)
        return definition

    monkeypatch.setattr(servers, "get_definition", find_and_change)
    body = {"hash": office.definitions["add"].hash}

    answer = Caller(api_key(manager)).post("/api/mcp/office/tools/add/accept", body)

    assert (answer.status_code, answer.body["code"]) == (404, "not_found")
    assert is_unchanged()


@pytest.mark.parametrize("action", ["switch", "restore"])
def test_an_acp_agent_that_was_deleted_meanwhile_is_named(client, monkeypatch, settings, action):
    settings.ACP_COMMANDS = {"coder": {"argv": ["/usr/bin/true"], "sandbox": "none"}}
    row = AcpAgent.objects.create(key="coder", title="Coder", command_key="coder")
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    select_for_update = type(AcpAgent.objects).select_for_update

    def delete_and_lock(manager, *args, **kwargs):
        row.delete()
        return select_for_update(manager, *args, **kwargs)

    monkeypatch.setattr(type(AcpAgent.objects), "select_for_update", delete_and_lock)

    answer = client.post(reverse(f"admin:tools_app_acpagent_{action}", args=[row.pk]), {"version": "1"})

    (message,) = get_messages(answer.wsgi_request)
    assert str(message) == "The ACP agent was deleted meanwhile."
