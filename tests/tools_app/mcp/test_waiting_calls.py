"""MCP servers that change while a call of one of their tools waits for a person, or for a connection."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from uuid import uuid4

import pytest
from pydantic_ai import ToolFailed

from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.engine.context import RunDeps
from runs_app.models import PendingCall
from tests.factories import member
from tests.runs import chunks, start_run, wait_for_end
from tests.served import wait_until
from tests.tools_app.mcp.test_runs import agent_with, built, listing
from tools_app.mcp import calls
from tools_app.mcp.listing import store_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def office(db):
    """Return a server with a stored list of tools, at an address that does not answer."""
    row = McpServer.objects.create(key="office", title="Office", owner_id="support", url="http://127.0.0.1:9/mcp")
    store_listing(row.pk, listing())
    row.refresh_from_db()
    return row


def switch_off(row):
    row.is_enabled = False
    row.save()


def move(row):
    row.owner_id = "legal"
    row.save()


def change_definition(row):
    store_listing(row.pk, listing("Subtract two numbers."))


@pytest.mark.parametrize("change", [switch_off, McpServer.delete, move, change_definition])
def test_an_approved_call_of_a_tool_that_is_gone_is_a_failed_tool(idle_engine, office, change):
    agent = agent_with({"office": {"tools": {"add": {"requireApproval": True}}}}, "support")
    user = member("editor", "support")
    run = start_run(agent, user, "Use office_add with 2 and 40.")
    wait_until(lambda: PendingCall.objects.filter(run=run).exists(), 30, "the call that waits")

    change(office)
    decide_pending_call(PendingCall.objects.get(), Decision(Verdict.APPROVE), user, PendingCall.Via.API)
    run = wait_for_end(run)

    (result,) = chunks(run, "tool-result")
    assert run.status == run.Status.SUCCEEDED
    assert result["payload"]["isError"]
    assert result["payload"]["result"] == (
        "The tool 'office_add' was not called. It was removed, changed or switched off while the call waited, so this "
        "agent can no longer use it."
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (switch_off, "The MCP server 'Office' is disabled."),
        (McpServer.delete, "The MCP server of this tool was deleted."),
        (move, "The MCP server of this tool belongs to another team now."),
    ],
)
def test_a_call_that_waited_for_a_connection_reaches_no_server_that_is_switched_off(
    office, monkeypatch, change, reason
):
    @asynccontextmanager
    async def wait_for_connection(server, headers):
        """Yield a connection that must not be used, after the change."""
        await asyncio.to_thread(change, office)
        yield None

    monkeypatch.setattr(calls, "session_pool", lambda: SimpleNamespace(use=wait_for_connection))
    tools, _ = built(agent_with({"office": {}}, "support"))
    context = SimpleNamespace(deps=RunDeps(uuid4(), "a", "support", None, call_sub_agent=None), tool_call_id="1")
    context.tool_call_metadata = None

    with pytest.raises(ToolFailed) as error:
        asyncio.run(tools["office_add"].function(context, a=2, b=40))

    assert str(error.value) == reason
