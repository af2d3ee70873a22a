"""A background task whose sub-agent waits for a person: it waits, continues and ends with the run of the sub-agent."""

import json

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents_app.models import Agent
from jobs_app import runner
from jobs_app.models import Job
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.approvals.expiry import expire_calls
from runs_app.approvals.lookup import find_call
from runs_app.background.child_waits import suspend_task_of_child
from runs_app.background.delivery import deliver_due
from runs_app.background.endings import cancel_task
from runs_app.background.maintenance import maintain_tasks
from runs_app.background.task_streams import TaskObserver
from runs_app.engine import reaper, run_ends
from runs_app.engine.engine import get_engine
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from runs_app.tasks import reap_runs
from tests.factories import AgentFactory
from tests.runs import chunks, wait_for_end
from tests.runs_app.background.test_api import task_of
from tests.runs_app.factories import PendingCallFactory, RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

CALL = ["agent-helper", {"prompt": "Refund it"}]
REFUND = ["refund", {"order": "A-17", "amount": 250}]
TASKS = "/api/background-tasks"


@pytest.fixture(params=[True, False], ids=["durable", "not durable"])
def options(request):
    return {"durable": request.param}


@pytest.fixture
def start(tasks):
    """Return a function that starts a run whose sub-agent asks for approvals, and waits until its task waits."""

    def start(*plan, options=None, disposition="deferred", **fields):
        model = {"provider": "planned", "name": "plan", "plan": [*plan] or [[REFUND], "Refunded."]}
        AgentFactory(id="helper", model=model, tools=["refund"])
        config = {"tools": {"helper": {"enabled": True, "disposition": disposition}}}
        run = tasks.start(
            [CALL], config=config, agents=["helper"], tools=[], options=options or {"durable": True}, **fields
        )
        if disposition == "deferred":
            wait_for_end(run)
        (task,) = tasks.wait(run, "suspended")
        return run, task

    return start


def decide_only(user, verdict, **fields):
    call = PendingCall.objects.waiting().exclude(kind="child").get()
    decide_pending_call(call, Decision(Verdict(verdict), **fields), user, PendingCall.Via.API)
    return call


def observe(observer):
    """Return the chunks of all tasks since the last look, by the end of their types."""
    seen = observer.read(BackgroundTask.objects.order_by("number"))
    return {chunk["type"].removeprefix("background-task-"): chunk["payload"] for chunk in seen}


def test_an_approved_sub_agent_completes_its_task(start, tasks, options, notes):
    run, task = start(options=options)
    observer = TaskObserver()
    before = observe(observer)
    reap_runs()
    reaper.reap_once()
    places = BackgroundTask.objects.in_slots().count()

    call = decide_only(tasks.user, "approve")
    (ended,) = tasks.wait(run, "completed")

    assert [*before] == ["running", "suspended"]
    waits_for = before["suspended"]["suspendPayload"]
    assert waits_for["runId"] == str(task.child_run_id)
    assert waits_for["calls"] == [
        {
            "approvalId": str(call.pk),
            "runId": str(task.child_run_id),
            "agentId": "helper",
            "toolCallId": "c0-0",
            "toolName": "refund",
            "args": REFUND[1],
        }
    ]
    assert places == 0
    assert (ended.result, ended.suspended_at, ended.attempts) == ("Refunded.", None, 1)
    after = observe(observer)
    assert [*after] == ["resumed", "completed"]
    assert after["completed"]["result"] == "Refunded."
    assert len([note for note in notes() if note.startswith("refund")]) == 1


def test_the_task_runs_again_while_its_sub_agent_works_after_the_decision(start, tasks):
    run, _ = start([REFUND], [["count", {"number": 1, "gate": "slow"}]], "Refunded.")
    AgentRun.objects.get(agent_key="helper")
    observer = TaskObserver()
    observe(observer)

    decide_only(tasks.user, "approve")
    (working,) = tasks.wait(run, "running")
    while_working = observe(observer)
    maintain_tasks()
    tasks.open("slow")
    (ended,) = tasks.wait(run, "completed")

    assert [*while_working] == ["resumed"]
    assert working.suspended_at is None
    assert [*observe(observer)] == ["completed"]
    assert ended.result == "Refunded."


def test_a_sub_agent_that_asks_twice_lets_its_task_wait_twice(start, tasks):
    run, task = start([REFUND], [["refund", {"order": "B", "amount": 1}]], "Refunded.")
    observer = TaskObserver()
    observe(observer)

    decide_only(tasks.user, "approve")
    wait_until(lambda: PendingCall.objects.filter(arguments__order="B").exists(), 20)
    (again,) = tasks.wait(run, "suspended")
    seen = observe(observer)
    decide_only(tasks.user, "approve")
    (ended,) = tasks.wait(run, "completed")

    assert again.suspended_at > task.suspended_at
    assert [*seen] == ["resumed", "suspended"]
    assert seen["suspended"]["suspendPayload"]["calls"][0]["args"] == {"order": "B", "amount": 1}
    assert ended.result == "Refunded."


def test_the_reason_of_a_refusal_reaches_the_sub_agent(start, tasks, options, notes):
    run, task = start(options=options)

    decide_only(tasks.user, "decline", reason="Not this order.")
    (ended,) = tasks.wait(run, "completed")

    (result,) = chunks(AgentRun.objects.get(pk=task.child_run_id), "tool-result")
    assert (result["payload"]["result"], ended.result) == ("Not this order.", "Refunded.")
    assert not [note for note in notes() if note.startswith("refund")]


def test_a_call_that_nobody_decides_in_time_is_declined_and_the_task_goes_on(start, tasks, notes):
    run, task = start()
    past = timezone.now() - timezone.timedelta(seconds=1)
    PendingCall.objects.waiting().update(expires_at=past)
    AgentRun.objects.filter(pk=task.child_run_id).update(expires_at=past)

    expire_calls()
    (ended,) = tasks.wait(run, "completed")

    assert ended.result == "Refunded."
    assert not [note for note in notes() if note.startswith("refund")]


def test_a_cancelled_task_cancels_its_sub_agent_and_its_call(start, tasks):
    run, task = start()
    observer = TaskObserver()
    observe(observer)

    cancel_task(task)
    (ended,) = tasks.wait(run, "cancelled")

    assert [*observe(observer)] == ["cancelled"]
    assert AgentRun.objects.get(pk=task.child_run_id).status == "cancelled"
    assert {*PendingCall.objects.values_list("state", flat=True)} == {"cancelled"}
    assert ended.error == "The task was cancelled."


def test_stopping_the_sub_agent_fails_its_task(start, tasks):
    run, task = start()
    observer = TaskObserver()
    observe(observer)

    run_ends.cancel_run(task.child_run_id)
    (ended,) = tasks.wait(run, "failed")

    seen = observe(observer)
    assert [*seen] == ["failed"]
    assert seen["failed"]["error"] == {"message": ended.error} == {"message": "The agent 'helper' was stopped."}


def test_a_run_that_awaits_the_task_waits_for_the_person_too(start, tasks):
    run, _ = start(disposition="awaited")
    wait_until(lambda: chunks(run, "tool-call-approval"), 20)
    run.refresh_from_db()
    call = find_call(run, "c0-0")

    decide_pending_call(call, Decision(Verdict.APPROVE), tasks.user, PendingCall.Via.API)
    done = wait_for_end(run)

    assert (call.tool, call.agent_key) == ("refund", "helper")
    assert chunks(run, "tool-call-approval")[0]["payload"]["args"] == REFUND[1]
    assert (done.status, done.output) == ("succeeded", "Done.")
    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == ["Refunded."]


def test_a_worker_that_lost_the_job_of_a_task_leaves_the_sub_agent_to_the_next_one(tasks, settings):
    settings.JOB_LEASE = 1  # seconds: the worker looks after its lease at each look
    model = {"provider": "planned", "name": "plan", "plan": [[["count", {"number": 1, "gate": "slow"}]], "Counted."]}
    AgentFactory(id="helper", model=model, tools=["count"])
    run = tasks.run([CALL], config={"tools": "all"}, agents=["helper"], tools=[], options={"durable": True})
    wait_until(lambda: AgentRun.objects.filter(parent=run, status="running").exists(), 20)
    (task,) = tasks.wait(run, "running")
    Job.objects.filter(pk=task.job_id).update(lease_until=timezone.now() - timezone.timedelta(hours=1))

    assert runner.run_claimed(str(task.job_id)) is not None
    wait_until(lambda: len(get_engine().background_work) == 1, 20, "the end of the first attempt")
    tasks.open("slow")
    (ended,) = tasks.wait(run, "completed")

    assert (ended.result, ended.attempts) == ("Counted.", 2)
    assert [child.status for child in run.children.all()] == ["succeeded"]


def test_tasks_that_wait_hide_no_younger_ones_in_a_stream(db):
    observer, since, run = TaskObserver(), timezone.now(), RunFactory()
    times = {"started_at": since, "suspended_at": since}
    older = [task_of(run, call_key=key, status="suspended", **times) for key in ("c1", "c2")]
    task_of(run, call_key="c3", status="running", started_at=since)

    def read():
        current = observer.current(BackgroundTask.objects.all(), since).order_by("created_at")[:2]
        return [chunk["type"].removeprefix("background-task-") for chunk in observer.read(current)]

    first, second = read(), read()
    BackgroundTask.objects.filter(pk=older[0].pk).update(suspended_at=since + timezone.timedelta(seconds=1))

    assert first == ["running", "suspended"] * 2
    assert second == ["running"]
    assert read() == ["resumed", "suspended"]


def test_a_stream_reads_the_calls_of_all_waiting_tasks_together(db):
    def count_queries(count):
        run, now = RunFactory(), timezone.now()
        for number in range(count):
            child = RunFactory(parent=run, root_id=run.pk, suspended=True)
            PendingCallFactory(run=child)
            times = {"started_at": now, "suspended_at": now}
            task_of(run, call_key=f"c{number}", status="suspended", child_run_id=child.pk, **times)
        with CaptureQueriesContext(connection) as queries:
            seen = TaskObserver().read(run.background_tasks.all())
        assert [len(chunk["payload"]["suspendPayload"]["calls"]) for chunk in seen[1::2]] == [1] * count
        return len(queries)

    assert count_queries(4) == count_queries(1)


def test_the_end_of_a_sub_agent_that_nobody_noted_is_found_by_maintenance(start, tasks):
    _, task = start()
    # What remains of a process that dies after it has committed the end of the child run.
    PendingCall.objects.update(state="cancelled")
    AgentRun.objects.filter(pk=task.child_run_id).update(
        status="succeeded", output="Late.", finished_at=timezone.now(), suspended_at=None
    )

    maintain_tasks()

    task.refresh_from_db()
    assert (task.status, task.result) == ("completed", "Late.")


def test_a_task_ends_when_its_waiting_sub_agent_is_deleted(start, tasks):
    _, task = start()

    Agent.objects.get(pk="helper").delete()
    maintain_tasks()

    task.refresh_from_db()
    assert (task.status, task.error) == ("failed", "The agent was deleted while it worked.")


def test_the_result_is_delivered_once_after_the_decision(start, tasks):
    run, task = start()
    decide_only(tasks.user, "approve")
    tasks.wait(run, "completed")
    BackgroundTask.objects.update(finished_at=timezone.now() - timezone.timedelta(seconds=1))

    deliver_due()
    deliver_due()

    (completed,) = chunks(run, "background-task-completed")
    assert (completed["payload"]["taskId"], completed["payload"]["result"]) == (str(task.pk), "Refunded.")


def test_the_api_decides_by_the_run_and_the_call_of_the_task(start, tasks):
    run, task = start()
    client = Client()
    client.force_login(tasks.user)
    waiting = client.get(f"{TASKS}/{task.pk}").json()
    listed = client.get(f"{TASKS}?status=suspended").json()["tasks"]

    body = json.dumps({"runId": waiting["runId"], "toolCallId": waiting["toolCallId"]})
    approved = client.post(
        f"/api/agents/{run.agent_key}/approve-tool-call-generate", body, content_type="application/json"
    )
    (ended,) = tasks.wait(run, "completed")
    repeated = client.post(
        f"/api/agents/{run.agent_key}/approve-tool-call-generate", body, content_type="application/json"
    )

    assert (waiting["status"], listed) == ("suspended", [waiting])
    assert waiting["suspendPayload"]["calls"][0]["toolName"] == "refund"
    assert (approved.status_code, repeated.status_code) == (200, 200)
    after = client.get(f"{TASKS}/{task.pk}").json()
    assert (after["status"], after["result"]) == ("completed", "Refunded.")
    assert not {"suspendedAt", "suspendPayload"} & after.keys()
    assert ended.attempts == 1


def test_the_page_leads_to_the_call_that_waits(start, tasks):
    _, task = start()
    client = Client()
    client.force_login(tasks.user)

    page = client.get(reverse("runs:background_tasks")).content.decode()
    child = client.get(reverse("runs:view", args=[task.child_run_id])).content.decode()

    assert "Waiting for a person" in page
    assert f'href="{reverse("runs:view", args=[task.child_run_id])}"' in page
    assert reverse("runs:decide", args=[PendingCall.objects.waiting().get().pk]) in child


def test_the_run_of_an_awaited_task_is_locked_before_the_task():
    """The end of the task locks it first, too. In another order, both could wait for each other."""
    task = BackgroundTask.objects.create(run=RunFactory(), tool="agent-helper", call_key="c", timeout_ms=1)
    BackgroundTask.objects.update(status="running", is_awaited=True)
    child = RunFactory(parent=task.run, parent_call_id="c", status="suspended")

    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        suspend_task_of_child(child)

    locking, suspending = (query["sql"] for query in queries)
    assert locking.startswith("SELECT")
    assert "runs_app_agentrun" in locking
    assert suspending.startswith('UPDATE "runs_app_backgroundtask"')
    task.refresh_from_db()
    assert task.status == "suspended"
