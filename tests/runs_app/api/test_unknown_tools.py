"""Options of runs and agents that name tools which the agent does not have."""

import pytest

from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, chunks

pytestmark = pytest.mark.usefixtures("idle_engine")

CLIENT_TOOL = {"current-place": {"description": "Where the caller is.", "inputSchema": {"type": "object"}}}


@pytest.fixture
def warnings():
    """Return a function that asks an agent and returns the warnings of the run as pairs of field and message."""

    def ask(agent, **body):
        caller = Caller(api_key(member("editor")))
        answer = caller.post(f"/api/agents/{agent.pk}/generate", {"messages": "Hi", **body})
        assert answer.status_code == 200
        return [(item["field"], item["message"]) for item in answer.body["warnings"]]

    return ask


def test_a_misspelled_tool_that_needs_approval_is_a_warning(warnings):
    agent = AgentFactory(model=DEMO, tools=["word-count"])

    assert warnings(agent, requireToolApproval=["word-cuont", "delete"]) == [
        (
            "requireToolApproval",
            "requireToolApproval names the tool word-cuont, which this run does not have. Did you mean word-count?",
        ),
        (
            "requireToolApproval",
            "requireToolApproval names the tool delete, which this run does not have. Use the key of a tool.",
        ),
    ]


def test_a_misspelled_active_tool_is_a_warning(warnings):
    agent = AgentFactory(model=DEMO, tools=["word-count"], default_options={"activeTools": ["wordcount"]})

    assert [field for field, _ in warnings(agent)] == ["activeTools"]


def test_a_stream_ends_with_the_warnings_that_came_up_meanwhile():
    agent = AgentFactory(model=DEMO)
    caller = Caller(api_key(member("editor")))
    body = {"messages": "Hi", "activeTools": ["word-cuont"]}

    caller.client.post(f"/api/agents/{agent.pk}/stream", body, content_type="application/json").getvalue()

    run = AgentRun.objects.get()
    (start,), (finish,) = chunks(run, "start"), chunks(run, "finish")
    assert start["payload"]["warnings"] == []
    assert finish["payload"]["warnings"] == run.warnings != []


def test_tools_of_the_agent_and_of_the_caller_are_known(warnings):
    memory = {"options": {"workingMemory": {"enabled": True}}}
    agent = AgentFactory(model=DEMO, tools=["word-count"], workflows=["triage-ticket"], memory=memory)
    names = ["word-count", "triage-ticket", "workflow-triage-ticket", "current-place", "updateWorkingMemory"]

    sent = {"memory": {"thread": "t", "resource": "r"}, "clientTools": CLIENT_TOOL}

    assert warnings(agent, activeTools=names, requireToolApproval=names, **sent) == []


def test_names_may_belong_to_tools_of_sub_agents(warnings):
    AgentFactory(id="clerk", model=DEMO, tools=["word-count"])
    agent = AgentFactory(model=DEMO, agents=["clerk"])

    assert warnings(agent, requireToolApproval=["word-count"]) == []
    assert [field for field, _ in warnings(agent, activeTools=["word-count"])] == ["activeTools"]


def test_a_sub_agent_does_not_report_the_tools_of_the_agent_above(warnings):
    clerk = AgentFactory(id="clerk", model=DEMO)
    agent = AgentFactory(model=DEMO, agents=["clerk"], tools=["word-count"])

    assert warnings(agent, messages="Use agent-clerk", requireToolApproval=["word-count"]) == []
    (child,) = clerk.runs.all()
    assert child.warnings == []


def test_many_names_are_a_few_warnings(warnings):
    names = [f"tool-{number}" for number in range(1000)]

    assert len(warnings(AgentFactory(model=DEMO), requireToolApproval=names)) == 20


def test_a_misspelled_background_task_is_a_warning(warnings):
    choices = {"tools": {"word-cuont": True, "word-count": True}}
    agent = AgentFactory(model=DEMO, tools=["word-count"], background_tasks=choices)

    assert warnings(agent) == [
        (
            "backgroundTasks",
            "backgroundTasks names the tool word-cuont, which this run does not have. Did you mean word-count?",
        )
    ]


def test_a_background_task_whose_tool_is_left_out_has_one_warning(warnings):
    agent = AgentFactory(model=DEMO, tools=["gone"], background_tasks={"tools": {"gone": True}})

    assert [field for field, _ in warnings(agent)] == ["tools"]
