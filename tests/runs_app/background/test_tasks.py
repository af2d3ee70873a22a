"""The life of a background task: limits, retries, timeouts, cancelling, approval, and delivery as an event."""

import asyncio
import math
from decimal import Decimal
from functools import partial

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client
from django.utils import timezone
from pydantic_ai import ModelRetry

from agents_app.registry import Kind, registry, tool
from jobs_app import runner
from jobs_app.models import Job
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.background import endings, execution, maintenance, steps
from runs_app.background.delivery import deliver_due
from runs_app.background.endings import cancel_task, end_task
from runs_app.background.maintenance import UNKNOWN_END_MESSAGE, maintain_tasks
from runs_app.background.steps import count_retry, report_progress
from runs_app.background.stream_chunks import end_chunk
from runs_app.calling import ToolCall
from runs_app.engine import run_ends
from runs_app.engine.engine import get_engine
from runs_app.models import BackgroundTask, BackgroundTaskDelivery, PendingCall
from tests.factories import AgentFactory
from tests.runs import chunks, wait_for_end
from tests.runs_app.background.test_api import task_of
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ALL = {"tools": "all"}


@pytest.fixture
def flaky(tasks):
    """Register a tool that fails at first, and one that is too slow."""
    calls = []

    @tool("flaky")
    def flaky() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise ValueError("Not yet.")
        return "At last."

    yield calls
    registry.remove(Kind.TOOL, "flaky")


def test_at_most_five_tasks_of_an_agent_run_at_once_and_the_rest_wait(tasks, settings):
    calls = [["count", {"number": number, "gate": "all"}] for number in range(20)]
    run = tasks.start(calls, config=ALL)
    states = BackgroundTask.objects.values_list("status", "job__state", "error")
    wait_until(lambda: BackgroundTask.objects.filter(status="running").count() == 5, 60, lambda: [*states.all()])
    wait_for_end(run)
    running = BackgroundTask.objects.filter(status="running").count()
    places = BackgroundTask.objects.in_slots().count()
    tasks.open("all")

    ended = tasks.wait(run, *["completed"] * 20)

    assert (running, places) == (5, 5)
    assert [task.result for task in ended] == [f"result {number}" for number in range(20)]
    assert BackgroundTask.objects.in_slots().count() == 0


def test_a_failed_task_is_retried_as_often_as_its_call_says(tasks, flaky, monkeypatch):
    from runs_app.background import execution

    monkeypatch.setattr(execution, "TASK_RETRY_DELAY", 0.01)
    twice = tasks.run([["flaky", {"_background": {"maxRetries": 2}}]], config=ALL, tools=["flaky"])
    (task,) = tasks.wait(twice)
    flaky.clear()
    never = tasks.run([["flaky", {}]], config=ALL, tools=["flaky"])
    (other,) = tasks.wait(never)

    assert (task.status, task.result, task.retries) == ("completed", "At last.", 2)
    assert (other.status, other.error, other.retries) == ("failed", "Not yet.", 0)


@pytest.mark.parametrize(
    ("reported", "stored", "percent"),
    [
        ((3, 4, "Shelf 3"), {"done": 3, "total": 4, "text": "Shelf 3"}, 75),
        ((3, math.inf), {"done": 3}, None),
        ((math.nan, 4), {"total": 4}, None),
        ((Decimal("1.5"), 6), {"done": 1.5, "total": 6}, 25),
        (("half", 2, "a\0b\ud800"), {"total": 2, "text": "a\ufffdb?"}, None),
        ((-1, 2), {"done": -1, "total": 2}, 0),
        ((1, -2), {"done": 1, "total": -2}, None),
    ],
    ids=["usual", "infinite", "not a number", "decimal", "no number", "negative", "negative total"],
)
def test_progress_that_cannot_be_shown_does_not_stop_the_tool(db, reported, stored, percent):
    task = task_of(RunFactory(), status="running")
    call = ToolCall(task.run_id, task.run_id, "c1", 1, "", report=partial(report_progress, task.pk))

    call.report_progress(*reported)

    task.refresh_from_db()
    assert (task.progress, task.percent) == (stored, percent)


def test_an_outage_while_progress_is_stored_does_not_stop_the_tool(db, monkeypatch):
    task = task_of(RunFactory(), status="running")

    def fail(*args, **columns):
        raise OperationalError("the database is away")

    monkeypatch.setattr(BackgroundTask.objects.filter().__class__, "update", fail)
    report_progress(task.pk, {"done": 1})
    monkeypatch.undo()
    task.refresh_from_db()

    assert task.progress is None


@pytest.fixture
def away_once(monkeypatch):
    """Return a function that lets another one meet an outage of the database when it is called first."""

    def interrupt(module, name, error=OperationalError):
        original, calls = getattr(module, name), []

        def meet_outage(*args, **kwargs):
            calls.append(name)
            if len(calls) == 1:
                raise error("the database is away")
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, meet_outage)

    return interrupt


def test_a_result_is_stored_as_soon_as_the_database_is_back(tasks, away_once, monkeypatch):
    monkeypatch.setattr(execution, "WATCH_INTERVAL", 0.05)
    away_once(endings, "end_task")
    run = tasks.run([["count", {"number": 1}]], config=ALL)
    (task,) = tasks.wait(run, "completed")

    assert (task.result, task.attempts) == ("result 1", 1)


def test_a_task_whose_beginning_meets_an_outage_begins_when_its_job_is_sent_again(tasks, away_once):
    away_once(steps, "claim_task")
    run = tasks.run([["count", {"number": 1}]], config=ALL)
    job = BackgroundTask.objects.get(run=run).job
    wait_until(lambda: not get_engine().background_work, 20)
    job.refresh_from_db()
    before = job.state
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timezone.timedelta(seconds=1))
    runner.run_claimed(str(job.pk))
    (task,) = tasks.wait(run, "completed")

    assert (before, task.result) == ("running", "result 1")


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_the_watch_of_a_task_goes_on_after_an_outage(db, away_once, monkeypatch, error):
    monkeypatch.setattr(execution, "WATCH_INTERVAL", 0)
    away_once(steps, "was_cancelled", error)
    task = task_of(RunFactory(), status="cancelled")

    async def watch():
        work = asyncio.ensure_future(asyncio.Event().wait())
        watching = asyncio.ensure_future(execution.watch_job(Job(), task.pk, work))
        await asyncio.wait([work, watching], return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        return work.cancelled()

    assert asyncio.run(watch())


def test_a_worker_that_has_lost_a_task_neither_repeats_nor_ends_it(db):
    run = RunFactory()
    lost = task_of(run, status="running", attempts=1, max_retries=5)
    BackgroundTask.objects.update(attempts=2)  # another worker has it

    is_counted = count_retry(lost)

    assert (is_counted, lost.attempts) == (False, 1)
    assert not end_task(lost, "failed", error="Late.")
    lost.refresh_from_db()
    assert (lost.status, lost.retries) == ("running", 0)


@pytest.fixture
def broken(tasks):
    """Register a tool that raises an error. Return a function that runs it as a task."""
    raised = []

    @tool("broken")
    async def broken() -> str:
        raise raised[0]

    def run(error):
        raised[:] = [error]
        return tasks.wait(tasks.run([["broken", {}]], config=ALL, tools=["broken"]))[0]

    yield run
    registry.remove(Kind.TOOL, "broken")


@pytest.mark.parametrize(
    ("error", "stored"),
    [
        (ModelRetry("Unknown: a\0b\ud800"), "Unknown: a\ufffdb?"),
        (asyncio.CancelledError(), "The function broke off its work, although nobody has cancelled it."),
    ],
    ids=["a text that cannot be stored", "a cancellation that nobody asked for"],
)
def test_an_error_of_a_tool_ends_its_task(broken, error, stored):
    task = broken(error)

    assert (task.status, task.error) == ("failed", stored)


def test_a_task_whose_job_has_ended_without_it_frees_its_place(db):
    job = Job.objects.create(kind="background_task", state=Job.State.DONE)
    task = task_of(RunFactory(), status="running", attempts=1, job=job)

    maintain_tasks()

    task.refresh_from_db()
    assert (task.status, task.error) == ("failed", UNKNOWN_END_MESSAGE)


def test_an_error_with_one_lost_task_holds_up_no_others(db, monkeypatch):
    jobs = [Job.objects.create(kind="background_task", state=Job.State.DONE) for _ in range(2)]
    first, second = (task_of(RunFactory(), status="running", attempts=1, job=job) for job in jobs)

    def fail_for_first(task, *arguments, **columns):
        if task.pk == first.pk:
            raise ValueError("The row of the task is damaged.")
        return end_task(task, *arguments, **columns)

    monkeypatch.setattr(maintenance, "end_task", fail_for_first)

    maintain_tasks()

    assert dict(BackgroundTask.objects.values_list("pk", "status")) == {first.pk: "running", second.pk: "failed"}


def test_a_task_that_takes_too_long_is_stopped(tasks):
    run = tasks.run([["count", {"number": 1, "gate": "never", "_background": {"timeoutMs": 50}}]], config=ALL)
    (task,) = tasks.wait(run, "timed_out")
    tasks.open("never")

    assert task.error == "The tool took longer than 0.05 seconds and was stopped."


def test_a_cancelled_task_is_stopped_and_reported_and_its_place_is_free(tasks):
    run = tasks.run([["count", {"number": 1, "gate": "g"}]], config=ALL)
    (task,) = tasks.wait(run, "running")
    was_cancelled = cancel_task(task)
    again = cancel_task(task)
    tasks.open("g")
    BackgroundTask.objects.update(finished_at=timezone.now() - timezone.timedelta(seconds=1))
    deliver_due()
    deliver_due()

    assert (was_cancelled, again) == (True, False)
    assert [chunk["payload"]["taskId"] for chunk in chunks(run, "background-task-cancelled")] == [str(task.pk)]
    assert BackgroundTask.objects.in_slots().count() == 0


def test_cancelling_a_run_cancels_its_tasks_and_reports_nothing(tasks):
    run = tasks.start(
        [
            ["count", {"number": 1, "gate": "a"}],
            ["count", {"number": 2, "gate": "b", "_background": {"enabled": False}}],
        ],
        config=ALL,
    )
    wait_until(lambda: BackgroundTask.objects.filter(status="running").exists(), 20)
    run_ends.cancel_run(run.pk)
    wait_for_end(run)
    (task,) = tasks.wait(run, "cancelled")
    tasks.open("a")
    tasks.open("b")

    assert not task.is_delivery_due
    assert not BackgroundTaskDelivery.objects.exists()


def test_a_tool_that_needs_approval_asks_before_its_task_is_created(tasks):
    run = tasks.start(
        [["refund", {"order": "A-17", "amount": 250, "_background": {"maxRetries": 1}}]], config=ALL, tools=["refund"]
    )
    wait_until(lambda: PendingCall.objects.waiting().exists(), 20)
    call = PendingCall.objects.get()
    before = BackgroundTask.objects.count()
    decide_pending_call(
        call, Decision(Verdict.APPROVE, arguments={"order": "A-17", "amount": 200}), tasks.user, PendingCall.Via.API
    )
    wait_for_end(run)
    (task,) = tasks.wait(run, "completed")

    assert before == 0
    assert call.arguments == {"order": "A-17", "amount": 250}
    assert "_background" not in call.arguments_schema["properties"]
    assert (task.arguments, task.result, task.max_retries) == ({"order": "A-17", "amount": 200}, "200 refunded", 1)


def test_results_that_end_together_are_delivered_once_each_as_events_of_their_run(tasks):
    calls = [["count", {"number": number, "gate": "both"}] for number in (1, 2)]
    run = tasks.run(calls, config=ALL)
    tasks.wait(run, "running", "running")
    tasks.open("both")
    wait_until(lambda: BackgroundTaskDelivery.objects.count() == 2, 20)
    deliver_due()
    completed = chunks(run, "background-task-completed")

    assert sorted(chunk["payload"]["result"] for chunk in completed) == ["result 1", "result 2"]
    assert list(run.events.order_by("number").values_list("number", flat=True)) == [*range(1, run.events.count() + 1)]
    assert completed[0]["payload"].keys() == {
        "taskId",
        "toolName",
        "toolCallId",
        "runId",
        "agentId",
        "completedAt",
        "result",
    }


def test_results_of_ordered_tools_come_in_the_order_of_their_calls(tasks):
    config = {"tools": {"count": {"enabled": True, "ordered": True}}}
    calls = [["count", {"number": number, "gate": f"g{number}"}] for number in (1, 2)]
    run = tasks.run(calls, config=config)
    tasks.wait(run, "running", "running")
    tasks.open("g2")
    tasks.wait(run, "running", "completed")
    BackgroundTask.objects.filter(result="result 2").update(finished_at=timezone.now() - timezone.timedelta(seconds=2))
    deliver_due()
    before = BackgroundTaskDelivery.objects.count()
    tasks.open("g1")
    wait_until(lambda: BackgroundTaskDelivery.objects.count() == 2, 20)

    assert before == 0
    results = [chunk["payload"]["result"] for chunk in chunks(run, "background-task-completed")]
    assert results == ["result 1", "result 2"]


def test_a_sub_agent_in_the_background_answers_in_a_child_run(tasks):
    AgentFactory(id="helper", model={"provider": "demo", "name": "echo", "delay": 0})
    run = tasks.run([["agent-helper", {"prompt": "Look this up"}]], config=ALL, agents=["helper"], tools=[])
    (task,) = tasks.wait(run, "completed")

    assert "Look this up" in task.result
    assert run.children.count() == 1


@pytest.mark.parametrize("length", [2, 130])
def test_tasks_start_tasks_at_most_three_deep(length, tasks):
    from agents_app.configuration.background_tasks import BackgroundRules
    from runs_app.background.dispatch import BackgroundCall, find_or_create_task
    from tests.runs_app.factories import RunFactory

    run, depths = RunFactory(), []
    for number in range(4):
        key = f"{number}".rjust(length, "c")
        call = BackgroundCall(run.pk, "count", f"c{number}", key, number, {"number": 1}, BackgroundRules())
        task = find_or_create_task(call)
        depths.append(task and task.depth)
        repeated = find_or_create_task(call)
        assert (repeated and repeated.pk) == (task and task.pk)
        run = RunFactory(parent=run, parent_call_id=key[:128], root_id=run.root_id)

    assert depths == [1, 2, 3, None]


@pytest.mark.parametrize("disposition", ["deferred", "awaited"])
@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "not durable"])
def test_a_task_is_found_by_an_id_of_its_call_of_any_length(tasks, disposition, is_durable):
    """A provider may put a whole state into the ID of a call."""
    call_id = "call_" + "x" * 1500
    model = {"provider": "planned", "name": "plan", "plan": [[["count", {"number": 1}]], "Done."], "call_id": call_id}
    config = {"tools": {"count": {"enabled": True, "disposition": disposition}}}
    agent = AgentFactory(model=model, tools=["count"], background_tasks=config)
    client = Client()
    client.force_login(tasks.user)

    run = tasks.run([], agent=agent, options={"durable": is_durable})
    (task,) = tasks.wait(run, "completed")
    listed = client.get("/api/background-tasks", {"toolCallId": call_id}).json()["tasks"]

    assert [item["id"] for item in listed] == [str(task.pk)]
    started, called = chunks(run, "background-task-started"), chunks(run, "tool-call")
    assert [chunk["payload"]["taskId"] for chunk in started] == [str(task.pk)]
    assert {chunk["payload"]["toolCallId"] for chunk in (*started, *called)} == {call_id}
    assert {listed[0]["toolCallId"], end_chunk(task)["payload"]["toolCallId"]} == {call_id}


def test_calls_with_long_ids_that_begin_equally_have_keys_that_differ_at_their_beginning(tasks):
    """A child run stores the beginning of the key of its call, by which its task is found."""
    from agents_app.configuration.background_tasks import BackgroundRules
    from runs_app.background.dispatch import BackgroundCall, find_or_create_task
    from tests.runs_app.factories import RunFactory

    run, ids = RunFactory(), ["c" * 200 + str(number) for number in range(2)]
    calls = [BackgroundCall(run.pk, "count", call_id, "", 1, {}, BackgroundRules()) for call_id in ids]

    created = [find_or_create_task(call) for call in calls]

    assert len({task.call_key[:128] for task in created}) == 2
    assert [task.call_id for task in created] == ids


def test_a_tool_reads_the_same_idempotency_key_as_in_the_run(tasks):
    run = tasks.run([["call-facts", {}]], config=ALL, tools=["call-facts"], options={"durable": True})
    (task,) = tasks.wait(run, "completed")

    assert task.result == {"attempt": 1, "key": f"{run.pk}:c0-0"}


def test_a_tool_knows_the_facts_about_the_caller_instead_of_claims_as_in_the_run(tasks, monkeypatch):
    contexts, build_deps = [], execution.build_deps

    def build_and_note(*arguments):
        deps = build_deps(*arguments)
        contexts.append(deps.request_context)
        return deps

    monkeypatch.setattr(execution, "build_deps", build_and_note)
    claims = {"userId": "u0", "lang": "de"}
    run = tasks.run([["count", {"number": 1}]], config=ALL, agents=["other"], request_context=claims)
    tasks.wait(run, "completed")

    assert contexts == [{**run.facts, "lang": "de"}]
    assert run.facts["userId"] == f"u{tasks.user.pk}"
