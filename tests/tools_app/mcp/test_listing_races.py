"""Listings of MCP servers that change while they are asked."""

import pytest

from jobs_app.models import Job
from jobs_app.runner import run_claimed, run_now
from tests.mcp_servers.scripted import scripted_server
from tools_app.mcp import listing
from tools_app.mcp.listing import LIST_TOOLS, MAX_LISTINGS, enqueue_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

GONE = "http://127.0.0.1:9/mcp"


@pytest.fixture
def servers(loopback):
    """Return two servers, each with a tool of its name."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("old", "new")]
    with scripted_server("127.0.0.1", tools[0]) as old, scripted_server("127.0.0.1", tools[1]) as new:
        yield old, new


@pytest.fixture
def while_asking(monkeypatch):
    """Return a function that plans a change of rows, which happens after a server was read and before it answers."""

    def plan(change):
        read = listing.server_from_row

        def read_and_change(row):
            server = read(row)
            change(row)
            return server

        monkeypatch.setattr(listing, "server_from_row", read_and_change)

    return plan


def row_at(url, key="office"):
    return McpServer.objects.create(key=key, title=key.title(), url=url)


def list_now(row):
    job = run_claimed(str(enqueue_listing(row).pk))
    job.refresh_from_db()
    row.refresh_from_db()
    return job


def test_tools_of_an_earlier_address_are_not_stored_for_the_present_one(servers, while_asking):
    old, new = servers
    row = row_at(old.url)
    while_asking(lambda row: McpServer.objects.filter(pk=row.pk).update(url=new.url))

    job = list_now(row)

    assert job.state == Job.State.DONE, job.error
    assert ([*row.tools], [*row.accepted]) == (["new"], ["new"])


def test_the_error_of_an_earlier_address_is_not_that_of_the_present_one(servers, while_asking):
    row = row_at(GONE)
    while_asking(lambda row: McpServer.objects.filter(pk=row.pk).update(url=servers[1].url))

    job = list_now(row)

    assert (job.state, row.list_error, [*row.tools]) == (Job.State.DONE, "", ["new"])


def test_a_server_that_is_changed_again_and_again_fails_the_job(servers, while_asking):
    row, addresses = row_at(servers[0].url), iter(range(10))
    while_asking(lambda row: McpServer.objects.filter(pk=row.pk).update(encrypted_headers=f"other {next(addresses)}"))

    job = list_now(row)

    assert job.error == "The MCP server 'Office' was changed while it was asked. List its tools again."
    assert next(addresses) == MAX_LISTINGS
    assert row.tools == {}


def test_the_nightly_listing_asks_each_server_as_it_is_when_its_turn_comes(servers, while_asking):
    old, new = servers
    row_at(old.url, "first")
    moved, disabled, deleted = (row_at(GONE, key) for key in ("moved", "disabled", "deleted"))

    def change(row):
        McpServer.objects.filter(pk=moved.pk).update(url=new.url)
        McpServer.objects.filter(pk=disabled.pk).update(is_enabled=False)
        McpServer.objects.filter(pk=deleted.pk).delete()

    while_asking(change)

    job = run_now(LIST_TOOLS, {})

    assert [(report["server"], report.get("added")) for report in job.result["servers"]] == [
        ("first", ["old"]),
        ("moved", ["new"]),
    ]
    disabled.refresh_from_db()
    assert disabled.list_error == ""
