"""Mocks of tools in experiments, and tools that an experiment never calls: those that work outside of the run."""

import sys

import pytest

from agents_app.registry import tool
from runs_app.models import AgentRun, BackgroundTask
from runs_app.providers import cached_providers
from tests.durable import agent_tools
from tests.evals_app.experiment_runs import make_dataset, run_experiment
from tests.factories import AgentFactory, member
from tests.runs import chunks
from tools_app.acp.cached_agents import acp_table
from tools_app.models import AcpAgent

NO_PERSON = "In an experiment, no person can be asked."
NOT_DECLARED, MISMATCH, EXHAUSTED = "TOOL_MOCK_NOT_DECLARED", "TOOL_MOCK_MISMATCH", "TOOL_MOCK_EXHAUSTED"


@pytest.fixture
def notes(idle_engine, tmp_path, monkeypatch):
    """Register the planned model and its tools. Return a function that reads which tools were called."""
    monkeypatch.setenv("DURABLE_FOLDER", str(tmp_path))
    agent_tools.register()
    cached_providers.invalidate()
    path = tmp_path / "notes"

    def read():
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not line.startswith("model")]

    return read


@pytest.fixture
def acp(idle_engine, settings):
    """Add an ACP agent, which nothing in these tests may start."""
    settings.ACP_COMMANDS = {"never": {"argv": [sys.executable, "-c", "raise SystemExit(1)"], "sandbox": "none"}}
    AcpAgent.objects.create(key="coder", title="Coder", command_key="never")
    acp_table.invalidate()
    yield
    acp_table.invalidate()


def planned(*steps, tools=("count",), **fields):
    """Return an agent whose model makes these calls and gives the last step as its answer."""
    model = {"provider": "planned", "name": "plan", "plan": [*steps]}
    return AgentFactory(model=model, tools=[*tools], instructions="", **fields)


def mock(number, output="mocked", name="count", **more):
    return {"toolName": name, "args": {"number": number}, "output": output, **more}


def call(number, name="count", **more):
    return [name, {"number": number, **more}]


def result_of(agent, *mocks, policy="allow"):
    """Run an experiment over one item with these mocks, and return its result."""
    item = {"input": "Begin", "tool_mocks": [*mocks] or None, "unmocked_tool_policy": policy}
    dataset = make_dataset(item, pk=f"support-{agent.pk}")
    experiment = run_experiment(dataset, member("editor"), agent)
    assert experiment.status == "completed", experiment.error
    return experiment.results.select_related("run").get()


def tool_results(run):
    return [chunk["payload"]["result"] for chunk in chunks(run, "tool-result")]


def test_a_mock_answers_in_place_of_its_tool(notes):
    result = result_of(planned([call(1)], "Done."), mock(1, {"total": 7}))

    assert (result.output, result.error, notes()) == ("Done.", None, [])
    assert tool_results(result.run) == [{"total": 7}]
    assert result.tool_mock_report == {
        "served": [{"mockIndex": 0, "toolName": "count", "args": {"number": 1}}],
        "unconsumed": [],
        "liveCalls": [],
    }


def test_a_call_without_a_mock_is_live_where_that_is_allowed(notes):
    result = result_of(planned([call(1), call(2)], "Done."), mock(2), mock(3))

    assert notes() == ["tool 1 begins", "tool 1 ends"]
    assert sorted(tool_results(result.run)) == ["mocked", "result 1"]
    report = result.tool_mock_report
    assert report["served"] == [{"mockIndex": 0, "toolName": "count", "args": {"number": 2}}]
    assert report["liveCalls"] == [{"toolName": "count", "args": {"number": 1}}]
    assert report["unconsumed"] == [{"mockIndex": 1, "toolName": "count", "args": {"number": 3}}]


@pytest.mark.parametrize(
    ("calls", "mocks", "code", "message"),
    [
        ([call(1)], [], NOT_DECLARED, "has no mock"),
        ([call(1)], [mock(2)], MISMATCH, "has the arguments"),
        ([call(1), call(1)], [mock(1)], EXHAUSTED, "are used up"),
    ],
)
def test_a_call_without_a_mock_fails_the_item_where_it_is_denied(notes, calls, mocks, code, message):
    result = result_of(planned(calls, "Done."), *mocks, policy="deny")

    assert (result.error["code"], result.output, notes()) == (code, None, [])
    assert message in result.error["message"]
    assert result.tool_mock_report["failure"] == {"code": code, "toolName": "count", "args": {"number": 1}}
    assert result.tool_mock_report["liveCalls"] == []


def test_each_mock_answers_once_in_the_order_of_the_item(notes):
    result = result_of(planned([call(1)], [call(1)], "Done."), mock(1, "first"), mock(1, "second"), policy="deny")

    assert tool_results(result.run) == ["first", "second"]
    assert [entry["mockIndex"] for entry in result.tool_mock_report["served"]] == [0, 1]


def test_a_mock_may_ignore_the_arguments(notes):
    strict = result_of(planned([call(1)], "Done."), mock(9, matchArgs="strict"), policy="deny")
    ignoring = result_of(planned([call(1)], "Done."), mock(9, matchArgs="ignore"), policy="deny")

    assert (strict.error["code"], ignoring.error) == (MISMATCH, None)
    assert tool_results(ignoring.run) == ["mocked"]


def test_a_tool_that_needs_approval_is_declined(notes):
    refund = ["refund", {"order": "A1", "amount": 5}]

    result = result_of(planned([refund], "Done.", tools=["refund"]))

    assert (result.output, result.error, notes()) == ("Done.", None, [])
    assert tool_results(result.run) == [NO_PERSON]


def test_a_mock_answers_for_a_tool_that_needs_approval(notes):
    refund = {"toolName": "refund", "args": {"order": "A1", "amount": 5}}

    result = result_of(
        planned([["refund", refund["args"]]], "Done.", tools=["refund"]), {**refund, "output": "5 refunded"}
    )

    assert tool_results(result.run) == ["5 refunded"]
    assert len(result.tool_mock_report["served"]) == 1


def test_tools_that_ask_people_while_they_work_are_declined(notes):
    """A predicate that wants approval, and a tool that suspends its call."""

    @tool("risky", requires_approval=lambda arguments, call: True)
    def risky(number: int) -> str:
        agent_tools.note("risky")
        return "No"

    agent = planned([call(1, "risky"), ["ask-person", {"question": "Size?"}]], "Done.", tools=["risky", "ask-person"])

    result = result_of(agent, mock(5))

    assert (result.output, tool_results(result.run)) == ("Done.", [NO_PERSON, NO_PERSON])
    assert "risky" not in notes()
    assert result.tool_mock_report["liveCalls"] == []


# --- Tools that work outside of the run


@pytest.mark.parametrize("disposition", ["deferred", "awaited"])
def test_a_background_task_without_a_mock_fails_the_item(notes, disposition):
    agent = planned(
        [call(1)], "Done.", background_tasks={"tools": {"count": {"enabled": True, "disposition": disposition}}}
    )

    result = result_of(agent)

    assert result.error["code"] == NOT_DECLARED
    assert "works outside of the run" in result.error["message"]
    assert (BackgroundTask.objects.count(), notes()) == (0, [])
    assert result.tool_mock_report["failure"]["toolName"] == "count"


def test_a_mock_answers_for_a_background_task(notes):
    agent = planned([call(1, _background={"disposition": "deferred"})], "Done.", background_tasks={"tools": "all"})

    result = result_of(agent, mock(1))

    assert (result.output, tool_results(result.run)) == ("Done.", ["mocked"])
    assert (BackgroundTask.objects.count(), notes()) == (0, [])
    assert result.tool_mock_report["served"] == [{"mockIndex": 0, "toolName": "count", "args": {"number": 1}}]


def test_a_call_in_the_foreground_of_a_background_tool_is_live(notes):
    config = {"tools": {"count": {"enabled": True, "disposition": "foreground"}}}

    result = result_of(planned([call(1)], "Done.", background_tasks=config))
    other = result_of(planned([call(2, _background={"enabled": True})], "Done.", background_tasks=config))

    assert (tool_results(result.run), result.error) == (["result 1"], None)
    assert (other.error["code"], BackgroundTask.objects.count()) == (NOT_DECLARED, 0)


@pytest.mark.parametrize(
    ("fields", "name", "argument"),
    [
        ({"tools": ["acp-coder"]}, "acp-coder", "task"),
        ({"tools": [], "agents": ["acp-coder"]}, "agent-acp-coder", "prompt"),
    ],
)
def test_an_acp_agent_without_a_mock_fails_the_item(notes, acp, fields, name, argument):
    calls = [[name, {argument: "Delete all files"}]]

    denied = result_of(planned(calls, "Done.", **fields))
    by_key = {"toolName": "acp-coder", "args": {argument: "Delete all files"}, "output": "Deleted."}
    mocked = result_of(planned(calls, "Done.", **fields), by_key)

    assert denied.error["code"] == NOT_DECLARED
    assert denied.tool_mock_report["failure"] == {"code": NOT_DECLARED, "toolName": name, "args": calls[0][1]}
    assert (mocked.error, tool_results(mocked.run)) == (None, ["Deleted."])
    assert [entry["mockIndex"] for entry in mocked.tool_mock_report["served"]] == [0]
    assert not AgentRun.objects.exclude(parent=None).exists()  # no run of the ACP agent


# --- Sub-agents


def test_sub_agents_use_the_same_mocks_each_once(notes):
    planned([call(1)], "Child.", id="child")
    agent = planned([call(1)], [["agent-child", {"prompt": "Go"}]], "Done.", agents=["child"])

    result = result_of(agent, mock(1, "first"), mock(1, "second"))

    (child,) = AgentRun.objects.filter(parent=result.run)
    assert (tool_results(result.run)[0], tool_results(child), notes()) == ("first", ["second"], [])
    assert [entry["mockIndex"] for entry in result.tool_mock_report["served"]] == [0, 1]
    assert [entry["toolName"] for entry in result.tool_mock_report["liveCalls"]] == ["agent-child"]


def test_a_call_of_a_sub_agent_that_is_not_allowed_fails_the_item(notes):
    planned([call(4)], "Child.", id="child", background_tasks={"tools": "all"})
    agent = planned([["agent-child", {"prompt": "Go"}]], "Done.", tools=[], agents=["child"])

    result = result_of(agent)

    assert (result.error["code"], BackgroundTask.objects.count(), notes()) == (NOT_DECLARED, 0, [])
    assert result.output is None
    assert result.tool_mock_report["failure"] == {"code": NOT_DECLARED, "toolName": "count", "args": {"number": 4}}


def test_a_tool_of_a_sub_agent_that_needs_approval_is_declined(notes):
    planned([["refund", {"order": "A1", "amount": 5}]], "Child.", id="child", tools=["refund"])
    agent = planned([["agent-child", {"prompt": "Go"}]], "Done.", tools=[], agents=["child"])

    result = result_of(agent)

    (child,) = AgentRun.objects.filter(parent=result.run)
    assert (result.error, tool_results(child), notes()) == (None, [NO_PERSON], [])
