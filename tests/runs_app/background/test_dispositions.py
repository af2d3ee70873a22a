"""The eight rows of the decision between foreground and background, in real runs."""

import pytest

from runs_app.models import AgentRun, BackgroundTask, PendingCall
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory
from tests.runs import chunks, wait_for_end
from tests.served import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

COUNT, REPORT = "count", "slow-report"


def result_of(run):
    return chunks(run, "tool-result")[0]["payload"]["result"]


@pytest.mark.parametrize(
    ("config", "tool", "override"),
    [
        (None, COUNT, None),
        (None, COUNT, {"enabled": True}),
        (None, REPORT, {"enabled": False}),
        ({"tools": {REPORT: False}}, REPORT, {"enabled": True}),
        ({"disabled": True}, REPORT, {"enabled": True}),
        ({"disabled": True, "tools": "all"}, COUNT, {"disposition": "awaited"}),
        ({"tools": {COUNT: {"timeoutMs": 5000}}}, COUNT, None),
        ({"tools": {COUNT: {"enabled": True, "disposition": "foreground"}}}, COUNT, None),
    ],
)
def test_these_calls_stay_in_the_foreground(tasks, config, tool, override):
    arguments = {"number": 1} | ({"_background": override} if override is not None else {})

    run = tasks.run([[tool, arguments]], config=config, tools=[tool])

    assert result_of(run) in ("result 1", "report 1")
    assert not BackgroundTask.objects.exists()


@pytest.mark.parametrize(
    ("config", "tool", "override", "timeout_ms", "retries"),
    [
        (None, REPORT, None, 300_000, 0),
        (None, REPORT, {"timeoutMs": 700, "maxRetries": 1}, 700, 1),
        ({"tools": {REPORT: True}}, REPORT, None, 300_000, 0),
        ({"tools": {COUNT: {"enabled": True, "timeoutMs": 9000}}}, COUNT, None, 9000, 0),
        ({"tools": {COUNT: {"enabled": True, "timeoutMs": 9000}}}, COUNT, {"timeoutMs": 8000}, 8000, 0),
        ({"tools": {COUNT: {"enabled": True}}}, COUNT, {"timeoutMs": 99_999_999, "maxRetries": 99}, 3_600_000, 5),
        ({"tools": {COUNT: {"enabled": True}}}, COUNT, {"timeoutMs": "x", "maxRetries": -1}, 300_000, 0),
        ({"tools": "all"}, COUNT, None, 300_000, 0),
        ({"tools": {COUNT: {"enabled": True, "disposition": "foreground"}}}, COUNT, {"enabled": True}, 300_000, 0),
        ({"tools": "all"}, COUNT, {"enabled": False, "disposition": "deferred"}, 300_000, 0),
    ],
)
def test_these_calls_run_in_the_background(tasks, config, tool, override, timeout_ms, retries):
    arguments = {"number": 1} | ({"_background": override} if override is not None else {})

    run = tasks.run([[tool, arguments]], config=config, tools=[tool])
    (task,) = tasks.wait(run, "completed")

    assert (task.timeout_ms, task.max_retries) == (timeout_ms, retries)
    assert task.arguments["number"] == 1
    assert "_background" not in task.arguments
    assert task.result in ("result 1", "report 1")
    assert result_of(run)["backgroundTaskId"] == str(task.pk)
    (started,) = chunks(run, "background-task-started")
    assert started["payload"] == {"taskId": str(task.pk), "toolName": tool, "toolCallId": "c0-0"}


def test_an_awaited_call_suspends_the_run_until_its_result(tasks):
    run = tasks.start(
        [["count", {"number": 7, "gate": "g", "_background": {"disposition": "awaited"}}]], config={"tools": "all"}
    )
    wait_until(lambda: AgentRun.objects.filter(pk=run.pk, status="suspended").exists(), 15)
    waits_for_people = PendingCall.objects.decidable_by(tasks.user).exists()
    tasks.open("g")
    run = wait_for_end(run)

    assert not waits_for_people
    assert (run.status, run.output, run.segment) == ("succeeded", "Done.", 1)
    assert result_of(run) == "result 7"


def test_an_awaited_result_that_comes_before_the_suspension_is_not_lost(tasks):
    calls = [["count", {"number": number, "_background": {"disposition": "awaited"}}] for number in (1, 2)]

    run = tasks.run(calls, config={"tools": "all"})

    assert [chunk["payload"]["result"] for chunk in chunks(run, "tool-result")] == ["result 1", "result 2"]


def test_the_field_is_in_the_schema_of_eligible_tools_only(tasks):
    def fields(config):
        agent = AgentFactory(tools=[COUNT, REPORT], background_tasks=config)
        tools = stored_agents.get(agent.pk).build().tools
        return {
            name for name, tool in tools.items() if "_background" in tool.tool_def.parameters_json_schema["properties"]
        }

    assert fields(None) == {REPORT}
    assert fields({"tools": {COUNT: True, REPORT: False}}) == {COUNT}
    assert fields({"tools": "all"}) == {COUNT, REPORT}
    assert fields({"disabled": True, "tools": "all"}) == set()
