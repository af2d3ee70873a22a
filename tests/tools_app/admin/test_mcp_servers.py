"""MCP servers in Django admin: add, list, compare, headers, switch off, and who may."""

import re

import pytest
from django.urls import reverse

from access_app.role import Role
from jobs_app.models import Job
from tests.factories import AgentFactory, UserFactory, member
from tests.tools_app.admin.test_acp_agents import button_value
from tools_app.admin.mcp_servers import McpServerAdmin
from tools_app.mcp.definitions import Definition, Listing
from tools_app.mcp.listing import store_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

ADD = reverse("admin:tools_app_mcpserver_add")
FIELDS = {
    "key": "office",
    "title": "Office",
    "transport": "http",
    "url": "https://mcp.example.org/mcp",
    "headers": "Authorization: Bearer hush\nX-User: {{user}}",
    "approval": "changes",
    "connect_timeout": "10",
    "call_timeout": "60",
    "is_enabled": "on",
}


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def page(row, name="change"):
    return reverse(f"admin:tools_app_mcpserver_{name}", args=[row.pk])


def errors(answer):
    return {name: list(messages) for name, messages in answer.context["adminform"].form.errors.items()}


def test_the_page_of_a_server_begins_with_the_error_of_its_listing(client, staff):
    client.post(ADD, FIELDS)
    McpServer.objects.update(list_error="The MCP server 'Office' cannot be reached.")

    text = client.get(page(McpServer.objects.get())).text

    assert text.count("&#x27;Office&#x27; cannot be reached.") == 1
    assert text.index("cannot be reached.") < text.index('name="title"')


def test_another_address_removes_the_error_of_the_earlier_one(staff):
    staff.post(ADD, FIELDS)
    McpServer.objects.update(list_error="The MCP server 'Office' cannot be reached.")
    change = page(McpServer.objects.get())
    fields = FIELDS | {"_continue": "yes"}

    renamed = staff.post(change, fields | {"headers": "", "title": "Bureau"}, follow=True).text
    moved = staff.post(change, fields | {"url": "https://new.example.org/mcp"}, follow=True).text

    assert "cannot be reached." in renamed
    assert "cannot be reached." not in moved


def listing(**descriptions):
    return Listing({name: Definition(name, text, {"type": "object"}) for name, text in descriptions.items()}, [])


def test_a_server_is_added_with_headers_that_no_page_shows(staff):
    staff.post(ADD, FIELDS)

    row = McpServer.objects.get()
    text = staff.get(page(row)).content.decode()
    assert row.headers == {"Authorization": "Bearer hush", "X-User": "{{user}}"}
    assert row.versions.count() == 1
    assert "Authorization, X-User" in text
    assert "hush" not in text
    assert Job.objects.get().kind == "list_mcp_tools"


def test_a_server_with_the_prefix_of_another_is_reported(staff):
    McpServer.objects.create(key="desk", title="Front desk", url="https://mcp.example.org/desk", prefix="office")
    McpServer.objects.create(key="other", title="Unrelated", url="https://mcp.example.org/other")

    answer = staff.post(ADD, FIELDS, follow=True)

    texts = [str(message) for message in answer.context["messages"]]
    assert [text for text in texts if "has the same prefix" in text] == [
        "Front desk has the same prefix. Of two tools with the same name, an agent gets the one of the server "
        "whose ID comes first."
    ]


def test_headers_are_kept_replaced_and_deleted(staff):
    staff.post(ADD, FIELDS)
    row = McpServer.objects.get()

    staff.post(page(row), {**FIELDS, "headers": "", "title": "Renamed"})
    row.refresh_from_db()
    assert (row.title, row.header_names) == ("Renamed", ["Authorization", "X-User"])

    moved = staff.post(page(row), {**FIELDS, "headers": "", "url": "https://other.example.org/mcp"})
    assert "headers" in errors(moved)

    staff.post(page(row), {**FIELDS, "headers": "Authorization: Bearer new"})
    row.refresh_from_db()
    assert row.headers == {"Authorization": "Bearer new"}

    staff.post(page(row), {**FIELDS, "headers": "", "delete_headers": "on"})
    row.refresh_from_db()
    assert row.headers == {}
    assert row.versions.count() == 4


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"headers": "no colon"}, "headers"),
        ({"headers": "Host: inside"}, "headers"),
        ({"headers": "A: b\na: c"}, "headers"),
        ({"headers": "A: b\nA: c"}, "headers"),
        ({"headers": "X: {{password}}"}, "headers"),
        ({"headers": "Bad Name: x"}, "headers"),
        ({"url": "http://10.0.0.1/mcp"}, "url"),
        ({"url": ""}, "url"),
        ({"key": "a_b"}, "key"),
        ({"prefix": "1"}, "prefix"),
        ({"call_timeout": "0"}, "call_timeout"),
        ({"transport": "stdio", "url": "", "headers": ""}, "command_key"),
        ({"command_key": "rm"}, "command_key"),
    ],
)
def test_invalid_values_are_refused_at_their_field(staff, changes, field):
    answer = staff.post(ADD, {**FIELDS, **changes})

    assert field in errors(answer)
    assert "hush" not in str(errors(answer))
    assert not McpServer.objects.exists()


def test_a_team_has_a_limited_number_of_servers(staff, settings):
    settings.MCP_SERVERS_PER_TEAM = 1
    staff.post(ADD, FIELDS)

    answer = staff.post(ADD, FIELDS | {"key": "second"})

    assert "has 1 MCP servers" in errors(answer)["owner_id"][0]
    assert McpServer.objects.count() == 1
    staff.post(page(McpServer.objects.get()), FIELDS | {"title": "Bureau"})
    assert McpServer.objects.get().title == "Bureau"


def test_a_server_that_moves_to_another_team_counts_there(staff, settings):
    settings.MCP_SERVERS_PER_TEAM = 1
    for key in ("support", "legal"):
        member(Role.MANAGER, key)
        staff.post(ADD, FIELDS | {"key": key, "owner_id": key})
    change = page(McpServer.objects.get(key="support"))

    answer = staff.post(change, FIELDS | {"key": "support", "owner_id": "legal"})

    assert "has 1 MCP servers" in errors(answer)["owner_id"][0]
    staff.post(change, FIELDS | {"key": "support", "owner_id": ""})
    assert {*McpServer.objects.values_list("key", "owner_id")} == {("support", ""), ("legal", "legal")}


def test_stored_headers_are_given_again_or_deleted_with_another_address(staff, commands):
    staff.post(ADD, {**FIELDS, "headers": "A: b\n\nC: d"})
    change = page(McpServer.objects.get())
    elsewhere = {**FIELDS, "headers": "", "url": "https://other.example.org/mcp"}

    refused = staff.post(change, elsewhere)
    names = McpServer.objects.get().header_names
    deleted = staff.post(change, {**elsewhere, "delete_headers": "on"})

    assert [*errors(refused)] == ["headers"]
    assert (names, deleted.status_code, McpServer.objects.get().header_names) == (["A", "C"], 302, [])


def test_a_command_in_the_form_is_422(staff):
    staff.post(ADD, FIELDS)

    refused = [staff.post(ADD, {**FIELDS, "key": "other", "command": "rm -rf /"})]
    refused.append(staff.post(page(McpServer.objects.get()), {**FIELDS, "argv": "sh"}))

    assert [answer.status_code for answer in refused] == [422, 422]
    assert {*errors(refused[0])} == {*errors(refused[1])} == {"__all__"}
    assert McpServer.objects.count() == 1


def test_a_program_is_chosen_from_the_list_of_the_operator(staff, commands):
    fields = {**FIELDS, "transport": "stdio", "url": "", "headers": "", "command_key": "bare"}

    staff.post(ADD, fields)

    assert McpServer.objects.get().command_key == "bare"


def test_a_changed_definition_is_shown_and_accepted(staff):
    row = McpServer.objects.create(key="office", title="Office", url="https://mcp.example.org/mcp")
    store_listing(row.pk, listing(add="Add.", send="Send."))
    store_listing(row.pk, listing(add="Add <b>and tell</b>."))

    text = staff.get(page(row)).content.decode()
    assert "Add &lt;b&gt;and tell&lt;/b&gt;." in text
    assert "not offered to agents until the change is accepted" in text
    assert "the server no longer lists it" in text

    row.refresh_from_db()
    staff.post(page(row, "accept"), {"tool": "add", "hash": "stale"})
    row.refresh_from_db()
    assert row.changed_tools == ["add"]
    staff.post(page(row, "accept"), {"tool": "add", "hash": row.definitions["add"].hash})
    row.refresh_from_db()
    assert row.changed_tools == []


def test_a_server_is_listed_and_switched_off_by_a_button(staff):
    row = McpServer.objects.create(key="office", title="Office", url="https://mcp.example.org/mcp")

    answer = staff.post(page(row, "list"))
    staff.post(page(row, "switch"))

    row.refresh_from_db()
    assert answer.url == reverse("admin:jobs_app_job_change", args=[Job.objects.get().pk])
    assert not row.is_enabled
    assert staff.get(page(row, "switch")).status_code == 405


def test_a_manager_sees_the_job_that_lists_the_tools(client):
    row = McpServer.objects.create(key="office", title="Office", owner_id="support", url=FIELDS["url"])
    client.force_login(member(Role.MANAGER, "support", is_staff=True))

    answer = client.post(page(row, "list"), follow=True)

    assert answer.redirect_chain == [(reverse("admin:jobs_app_job_change", args=[Job.objects.get().pk]), 302)]
    assert "Listing of MCP tools" in answer.text
    assert f'The tools of <a href="{page(row)}">Office</a> are being listed.' in answer.text


def test_the_button_of_a_page_that_is_not_up_to_date_leaves_a_server_as_it_is(staff):
    """It switched a server on again that somebody else had switched off."""
    row = McpServer.objects.create(key="office", title="Office", url="https://mcp.example.org/mcp")
    opened = button_value(staff.get(page(row)))

    for _ in range(2):
        staff.post(page(row, "switch"), {"enabled": opened})

    row.refresh_from_db()
    assert not row.is_enabled
    staff.post(page(row, "switch"), {"enabled": button_value(staff.get(page(row)))})
    row.refresh_from_db()
    assert row.is_enabled


@pytest.mark.parametrize("way", ["button", "action"])
def test_a_server_whose_program_may_not_be_started_cannot_be_enabled(staff, commands, settings, way):
    row = McpServer.objects.create(
        key="printer", title="Printer", transport="stdio", command_key="bare", is_enabled=False
    )
    settings.MCP_COMMANDS = {}

    def enable():
        if way == "button":
            return staff.post(page(row, "switch"), {"enabled": "yes"}, follow=True).content.decode()
        selected = {"action": "enable", "_selected_action": [row.pk]}
        return staff.post(reverse("admin:tools_app_mcpserver_changelist"), selected, follow=True).content.decode()

    refused = enable()
    row.refresh_from_db()
    was_enabled = row.is_enabled
    settings.MCP_COMMANDS = {"bare": {"argv": ["/usr/bin/true"], "sandbox": "none"}}
    enable()
    row.refresh_from_db()
    settings.MCP_COMMANDS = {}
    listed = staff.get(reverse("admin:tools_app_mcpserver_changelist")).content.decode()

    assert "Unknown command &#x27;bare&#x27;" in refused
    assert (was_enabled, row.is_enabled) == (False, True)
    assert Job.objects.count() == 1  # its tools are listed
    assert "Unknown command &#x27;bare&#x27;" in listed


def test_tools_that_are_listed_while_a_server_is_changed_stay(staff, monkeypatch):
    row = McpServer.objects.create(key="office", title="Office", url=FIELDS["url"])
    full_clean = McpServer.full_clean

    def list_meanwhile(self, *args, **kwargs):
        store_listing(row.pk, listing(add="Add."))
        full_clean(self, *args, **kwargs)

    monkeypatch.setattr(McpServer, "full_clean", list_meanwhile)
    staff.post(page(row), {**FIELDS, "title": "Bureau"})

    row.refresh_from_db()
    assert (row.title, [*row.tools], [*row.accepted]) == ("Bureau", ["add"], ["add"])
    assert row.header_names == ["Authorization", "X-User"]


def test_only_managers_change_the_servers_of_their_teams(client):
    ours = McpServer.objects.create(key="ours", title="Ours", owner_id="support", url="https://a.example.org")
    shared = McpServer.objects.create(key="shared", title="Shared", url="https://b.example.org")
    theirs = McpServer.objects.create(key="theirs", title="Theirs", owner_id="legal", url="https://c.example.org")
    client.force_login(member(Role.MANAGER, "support", is_staff=True))

    assert client.post(page(ours, "switch")).status_code == 302
    assert client.post(page(shared, "switch")).status_code == 403
    assert client.post(page(theirs, "switch")).status_code == 404
    assert client.post(page(shared, "restore"), {"version": "1"}).status_code == 403
    assert client.post(page(theirs, "restore"), {"version": "1"}).status_code == 404
    assert [*client.get(ADD).context["adminform"].form.fields["owner_id"].widget.choices] == [("support", "support")]
    refused = client.post(ADD, {**FIELDS, "owner_id": "legal"})
    assert "owner_id" in errors(refused)
    client.post(ADD, {**FIELDS, "owner_id": "support"})

    assert McpServer.objects.get(key="office").owner_id == "support"
    client.force_login(member(Role.PUBLISHER, "support", is_staff=True))
    assert client.post(page(ours, "switch")).status_code == 403


def test_an_earlier_version_is_restored_by_a_button(staff):
    staff.post(ADD, FIELDS)
    row = McpServer.objects.get()
    moved = {**FIELDS, "url": "https://new.example.org/mcp", "headers": "Authorization: Bearer new", "title": "Bureau"}
    staff.post(page(row), moved)

    text = staff.get(page(row)).content.decode()
    staff.post(page(row, "restore"), {"version": "9"})
    answer = staff.post(page(row, "restore"), {"version": "1"}, follow=True).content.decode()

    row.refresh_from_db()
    assert "Restore version 1" in text
    assert "Restore version 2" not in text
    assert "name, URL, headers" in text
    assert (row.title, row.url, row.headers) == ("Office", FIELDS["url"], {})
    assert [version.source for version in row.versions.all()] == ["restore", "admin", "admin"]
    assert "the stored headers were deleted: Authorization. Enter them again." in answer
    assert staff.get(page(row, "restore")).status_code == 405


def test_a_server_that_moves_before_its_lock_is_not_restored(client, monkeypatch):
    client.force_login(member(Role.MANAGER, "support", is_staff=True))
    row = McpServer.objects.create(key="office", title="Office", url="https://mcp.example.org/mcp", owner_id="support")
    get_changeable = McpServerAdmin.get_changeable

    def move(*arguments):
        server = get_changeable(*arguments)
        McpServer.objects.update(owner_id="sales")
        return server

    monkeypatch.setattr(McpServerAdmin, "get_changeable", move)

    assert client.post(page(row, "restore"), {"version": "1"}).status_code == 403
    assert row.versions.count() == 1


def test_the_page_names_the_agents_that_use_a_server_and_deletion_warns(client):
    row = McpServer.objects.create(key="office", title="Office", url="https://mcp.example.org/mcp")
    used = {"office": {"tools": {"add": {}}}}
    AgentFactory(id="clerk", name="Clerk <b>", owner_id="support", mcp_clients=used)
    AgentFactory(name="Secret", owner_id="legal", mcp_clients=used)
    client.force_login(member(Role.VIEWER, "support", is_staff=True))
    seen = client.get(page(row)).content.decode()
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    question = client.get(page(row, "delete")).content.decode()
    listing_page = client.get(reverse("admin:tools_app_mcpserver_changelist")).content.decode()

    assert "Clerk &lt;b&gt;" in seen
    assert "Secret" not in seen
    assert "1 more agent uses it in teams that you are not a member of." in seen
    assert "Agents use it</strong> and will run without its tools: Clerk &lt;b&gt;, Secret." in question
    assert "delete_selected" not in listing_page


def test_the_form_groups_the_fields_of_the_connection(staff):
    staff.post(ADD, FIELDS)

    for url in (ADD, page(McpServer.objects.get())):
        text = staff.get(url).text
        places = [text.index(part) for part in ('name="title"', ">Connection</h2>", 'name="url"', ">Tools</h2>")]
        assert places == sorted(places)
        assert 'type="url"' in text


@pytest.mark.parametrize(("owner_id", "team"), [("", "Shared"), ("support", "support")])
def test_the_page_of_a_server_names_its_team_for_those_who_only_read(client, owner_id, team):
    row = McpServer.objects.create(key="office", title="Office", owner_id=owner_id, url="https://x.example.org/mcp")
    client.force_login(member(Role.VIEWER, "support", is_staff=True))

    answer = client.get(reverse("admin:tools_app_mcpserver_change", args=[row.pk]))

    assert ("Team: " + team) in " ".join(re.sub("<[^>]+>", "", answer.text).split())


def test_a_program_without_a_command_is_asked_for_one(client):
    client.force_login(member(Role.MANAGER, "support", is_staff=True))
    program = {"key": "files", "title": "Files", "owner_id": "support", "transport": "stdio", "approval": "writes"}

    form = (
        client.post(
            reverse("admin:tools_app_mcpserver_add"), {**program, "connect_timeout": "5", "call_timeout": "60"}
        )
        .context["adminform"]
        .form
    )

    assert form.errors["command_key"] == ["Choose a key of MCP_COMMANDS, which the operator of the server sets."]
