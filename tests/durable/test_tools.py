"""Tools of a durable run whose process is lost: their jobs, failures, and changes of the registry."""

import time

import pytest
from celery import shared_task

from agents_app.registry import Kind, registry, tool, workflow
from jobs_app import runner
from jobs_app.models import Job
from runs_app.building.workflows import RUN_WORKFLOW
from runs_app.engine.engine import get_engine
from runs_app.engine.start import rows
from tests.durable.agent_tools import note
from tests.durable.conftest import QuietRunner
from tests.durable.test_journal import lose, notes, start, take_over, wait_for_steps
from tests.runs import chunks, wait_for_end
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")

GATED = [["count", {"number": 9, "gate": "nine"}]]


def test_a_repeated_workflow_finds_its_job(planned, monkeypatch):
    @workflow("add-one")
    @shared_task(name="tests.add_one")
    def add_one(number: int) -> int:
        return number + 1

    monkeypatch.setattr(runner, "send_job", lambda job_id: None)
    run = start([[["workflow-add-one", {"number": 1}]], "Done."], tools=[], workflows=["add-one"])
    jobs = Job.objects.filter(kind=RUN_WORKFLOW)
    wait_until(jobs.exists, 30, "the job")
    wait_for_steps(run, 1, "started")
    lose(run)

    get_engine().offer(run.pk)
    wait_until(lambda: run.steps.filter(kind="tool", attempts=2).exists(), 30, "the second attempt")
    runner.run_claimed(str(jobs.get().pk))  # fails if there are two

    done = wait_for_end(run)
    assert done.status == "succeeded"
    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == [2]


def test_a_failed_call_is_a_finished_step(planned):
    run = start([[["break", {"number": 1}]], GATED, "Done."], tools=["break", "count"])
    wait_for_steps(run, 3)
    lose(run)
    (planned / "nine.open").touch()

    done = take_over(run)

    assert notes(planned, "tool 1") == ["tool 1 fails"]
    failed, _ = chunks(done, "tool-result")
    assert (failed["payload"]["isError"], "The tool is broken." in str(failed["payload"]["result"])) == (True, True)


def test_a_call_that_takes_too_long_is_a_finished_step(planned, settings):
    settings.RUN_TOOL_TIMEOUT = 1

    @tool("sleep")
    def sleep(seconds: float) -> str:
        note("tool sleeps")
        time.sleep(seconds)
        return "late"

    run = start([[["sleep", {"seconds": 2}]], GATED, "Done."], tools=["sleep", "count"])
    wait_for_steps(run, 3)
    lose(run)
    settings.RUN_TOOL_TIMEOUT = 60
    (planned / "nine.open").touch()

    done = take_over(run)

    assert notes(planned, "tool sleeps") == ["tool sleeps"]
    assert chunks(done, "tool-result")[0]["payload"]["isError"] is True


def test_a_request_to_correct_the_arguments_is_repeated_from_the_journal(planned):
    plan = [[["count", {"number": "many"}]], [["count", {"number": 1}]], GATED, "Done."]
    run = start(plan)
    wait_for_steps(run, 1, "started")
    wait_until(lambda: notes(planned, "tool 9"), 30, "the third call")
    lose(run)
    (planned / "nine.open").touch()

    done = take_over(run)

    assert done.status == "succeeded"
    assert notes(planned, "model") == [f"model {number}" for number in range(4)]
    assert notes(planned, "tool 1") == ["tool 1 begins", "tool 1 ends"]
    calls = [chunk["payload"]["toolCallId"] for chunk in chunks(done, "tool-result")]
    assert len(calls) == len({*calls}) == 3


def test_a_tool_that_is_registered_while_a_run_is_queued_is_found(monkeypatch):
    monkeypatch.setattr(rows, "get_runner", QuietRunner)
    run = start([[["later", {}]], "Done."], tools=["later"])

    @tool("later")
    def later() -> str:
        return "It is here."

    done = take_over(run)

    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == ["It is here."]


def test_a_tool_that_is_removed_while_a_run_is_queued_is_an_answer_to_the_model(monkeypatch):
    monkeypatch.setattr(rows, "get_runner", QuietRunner)
    run = start([[["count", {"number": 1}]], "Done."])
    registry.remove(Kind.TOOL, "count")

    done = take_over(run)

    assert (done.status, done.output) == ("succeeded", "Done.")
    assert "count" in [warning["key"] for warning in done.warnings]
