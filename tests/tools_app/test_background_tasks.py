"""Tools from outside in background tasks: an MCP tool, and an ACP agent as a tool and as a sub-agent."""

import pytest

from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from tests.runs import chunks, wait_for_end
from tests.runs_app.background.conftest import notes, tasks  # noqa: F401  fixtures
from tests.tools_app.acp.conftest import commands as acp_commands  # noqa: F401  a fixture, which is used always
from tests.tools_app.acp.conftest import create_agent, ended_agents  # noqa: F401  a fixture
from tests.tools_app.mcp.test_runs import listing
from tools_app.mcp.listing import store_listing

pytestmark = pytest.mark.django_db(transaction=True)

ALL = {"tools": "all"}
SLOW = 90  # seconds in which a program has started, on a busy machine


@pytest.fixture
def team(tasks, ended_agents):  # noqa: F811
    """Return the tasks of a user of the team support, whose agents may use ACP agents."""
    tasks.user.memberships.update(owner_id="support")
    return tasks


def test_a_tool_of_a_server_works_in_the_background(tasks, http_server):  # noqa: F811
    store_listing(http_server.pk, listing())

    run = tasks.run([["office_add", {"a": 2, "b": 40}]], config=ALL, tools=[], mcp_clients={"office": {}})
    (task,) = tasks.wait(run, "completed", seconds=SLOW)

    assert (task.tool, task.result) == ("office_add", 42)
    assert task.is_at_most_once
    (started,) = chunks(run, "background-task-started")
    assert started["payload"]["toolName"] == "office_add"


def test_a_server_that_is_down_fails_the_task_with_its_title(tasks, http_server):  # noqa: F811
    store_listing(http_server.pk, listing())
    http_server.refresh_from_db()
    http_server.url = "http://127.0.0.1:9/mcp"
    http_server.save()

    run = tasks.run([["office_add", {"a": 2, "b": 40}]], config=ALL, tools=[], mcp_clients={"office": {}})
    (task,) = tasks.wait(run, "failed", seconds=SLOW)

    assert task.error == "The MCP server 'Office' cannot be reached."


def test_an_agent_of_another_program_works_in_the_background(team):
    create_agent()

    run = team.run([["acp-worker", {"task": "echo hello"}]], config=ALL, tools=["acp-worker"], owner_id="support")
    (task,) = team.wait(run, "completed", seconds=SLOW)

    assert task.result == {"output": "one two 1 hello"}
    assert task.is_at_most_once
    assert not AgentRun.objects.exclude(pk=run.pk).exists()


@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "not durable"])
def test_an_acp_agent_in_the_background_cannot_ask_a_person(team, settings, is_durable):
    create_agent(permissions="ask")
    calls = [["acp-worker", {"task": "edit a.txt hello"}]]

    run = team.run(calls, config=ALL, tools=["acp-worker"], owner_id="support", options={"durable": is_durable})
    (task,) = team.wait(run, "completed", seconds=SLOW)

    assert task.result == {"output": "not edited"}
    assert not [*settings.WORKSPACES_DIR.rglob("a.txt")]
    assert not PendingCall.objects.exists()


def test_as_a_sub_agent_it_asks_and_its_task_waits(team, settings):
    create_agent(permissions="ask")
    calls = [["agent-acp-worker", {"prompt": "edit a.txt hello"}]]

    run = wait_for_end(
        team.start(calls, config=ALL, tools=[], agents=["acp-worker"], owner_id="support", options={"durable": True})
    )
    (waiting,) = team.wait(run, "suspended", seconds=SLOW)
    call = PendingCall.objects.get()
    was_written = [*settings.WORKSPACES_DIR.rglob("a.txt")]
    decide_pending_call(
        call,
        Decision(Verdict.RESUME, resume_data={"outcome": "selected", "optionId": "yes"}),
        team.user,
        PendingCall.Via.API,
    )
    (task,) = team.wait(run, "completed", seconds=SLOW)

    assert (was_written, call.run_id) == ([], waiting.child_run_id)
    assert task.result.endswith("edited")
    assert [path.read_text() for path in settings.WORKSPACES_DIR.rglob("a.txt")] == ["hello"]
    assert BackgroundTask.objects.count() == 1
