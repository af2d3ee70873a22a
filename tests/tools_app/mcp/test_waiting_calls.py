"""MCP servers that change while a call of one of their tools waits for a person."""

import pytest

from runs_app.approvals.decisions import Decision, Verdict, decide
from runs_app.models import PendingCall
from tests.factories import member
from tests.runs import chunks, start_run, wait_for_end
from tests.served import wait_until
from tests.tools_app.mcp.test_runs import agent_with, listing
from tools_app.mcp.listing import store_listing
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db


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
    decide(PendingCall.objects.get(), Decision(Verdict.APPROVE), user, PendingCall.Via.API)
    run = wait_for_end(run)

    (result,) = chunks(run, "tool-result")
    assert run.status == run.Status.SUCCEEDED
    assert result["payload"]["isError"]
    assert result["payload"]["result"] == (
        "The tool 'office_add' was not called. It was removed, changed or switched off while the call waited, so this "
        "agent cannot use it any more."
    )
