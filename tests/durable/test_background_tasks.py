"""Killing the worker around a background task: each result is delivered exactly once, whatever the moment."""

import random
import time

import psutil
import pytest

from memory_app.models import Message
from runs_app.background.execution import TASK_OUTCOME_UNKNOWN
from runs_app.models import AgentRun, BackgroundTask, BackgroundTaskDelivery
from tests.conftest import DRILL
from tests.durable import kill_points
from tests.durable.decisions import settle
from tests.durable.test_crash import assert_complete
from tests.factories import AgentFactory
from tests.runs import start_run
from tests.served import wait_until

ROUNDS = 10 if DRILL else 1
KILLS = 10


def start(engine, name, calls, tool="count"):
    """Start a run in a conversation of its own, whose calls become tasks."""
    model = {"provider": "planned", "name": "plan", "plan": [calls, "Dispatched."], "on_result": "Read."}
    agent = AgentFactory(id=name, model=model, tools=[tool], background_tasks={"tools": "all"})
    return start_run(agent, engine.user, "Begin", thread=name, resource="r1", options={"durable": True})


def wait_for_delivery(run, count):
    """Wait until so many results are delivered, and until the runs that they woke have ended."""
    deliveries = BackgroundTaskDelivery.objects.filter(task__run=run)
    runs = AgentRun.objects.filter(thread=run.thread)
    wait_until(lambda: deliveries.count() >= count and not runs.unfinished().exists(), 40, f"{count} results of {run}")


def assert_delivered_once(run, count):
    """Check that each result came as one signal, which exactly one run has read."""
    tasks = BackgroundTask.objects.filter(run=run)
    signals = Message.objects.filter(thread=run.thread, role=Message.Role.SIGNAL)
    runs = AgentRun.objects.filter(thread=run.thread)
    assert [*tasks.values_list("status", "is_delivery_due")] == [("completed", False)] * count
    assert {signal.key for signal in signals} == {f"background-task-{task.pk}" for task in tasks}
    assert signals.count() == BackgroundTaskDelivery.objects.filter(task__run=run).count() == count
    read = [key for other in runs for key in other.input.get("signals", [])]
    assert len(read) == len({*read})
    assert {*runs.values_list("status", flat=True)} == {"succeeded"}
    for other in runs:
        assert_complete(other)


def wait_for_kill(engine, point):
    """Wait until a worker has killed itself at a point, and start the next one, unless it is there already."""
    wait_until(lambda: not kill_points.path_of(point).exists(), 30, f"the kill {point}")
    process = engine.processes[-1]
    if engine.name != "process":  # that forks the next worker
        process.wait(10)
        engine.start_process()


def test_a_worker_killed_at_any_point_of_a_task_delivers_its_result_once(task_engine):
    engine = task_engine
    engine.start_process()
    for number, point in enumerate([*kill_points.PLACES] * ROUNDS):
        kill_points.arm(point)

        run = start(engine, f"agent-{number}", [["count", {"number": number}]])
        wait_for_kill(engine, point)
        wait_for_delivery(run, 1)

        assert_delivered_once(run, 1)
        repetitions = 1 + (point == kill_points.IN_TOOL)
        begins, ends = f"tool {number} begins", f"tool {number} ends"
        assert engine.notes(begins, ends) == [*[begins] * repetitions, ends]


def test_a_worker_killed_while_it_delivers_two_results_at_once_wakes_one_run(task_engine):
    engine = task_engine
    engine.start_process()
    run = start(engine, "both", [["count", {"number": number, "gate": "both"}] for number in (1, 2)])
    engine.wait_for_note("tool 1 begins")
    engine.wait_for_note("tool 2 begins")
    engine.finish(run)
    kill_points.arm(kill_points.IN_DELIVERY)
    engine.open("both")
    wait_for_kill(engine, kill_points.IN_DELIVERY)
    wait_for_delivery(run, 2)

    assert_delivered_once(run, 2)
    assert AgentRun.objects.filter(thread=run.thread).count() == 2


def test_a_task_that_may_not_be_repeated_fails_after_a_kill_in_its_tool(task_engine):
    engine = task_engine
    engine.start_process()
    kill_points.arm(kill_points.IN_TOOL)
    run = start(engine, "once", [["count-once", {"number": 1, "_background": {"maxRetries": 3}}]], tool="count-once")
    wait_for_kill(engine, kill_points.IN_TOOL)
    wait_for_delivery(run, 1)

    task = BackgroundTask.objects.get(run=run)
    signal = Message.objects.get(thread=run.thread, role=Message.Role.SIGNAL)
    assert (task.status, task.error, task.attempts) == ("failed", TASK_OUTCOME_UNKNOWN, 2)
    assert "The outcome is unknown" in str(signal.data)
    assert engine.notes("tool 1") == ["tool 1 begins"]
    assert engine.finish(run).status == "succeeded"


def start_sub_agent(engine, name, plan):
    """Start a run in a conversation of its own, whose sub-agent works in the background."""
    model = {"provider": "planned", "name": "plan", "plan": plan}
    AgentFactory(id=f"{name}-helper", model=model, tools=["count", "refund"])
    calls = [[f"agent-{name}-helper", {"prompt": "Refund it"}]]
    model = {"provider": "planned", "name": "plan", "plan": [calls, "Dispatched."], "on_result": "Read."}
    agent = AgentFactory(id=name, model=model, agents=[f"{name}-helper"], background_tasks={"tools": "all"})
    return start_run(agent, engine.user, "Begin", thread=name, resource="r1", options={"durable": True})


def restart(engine):
    """Kill the worker, and start another one."""
    process = engine.processes[-1]
    kill_worker(engine, process)
    if engine.name != "process":
        process.wait(10)
        engine.start_process()


def test_a_sub_agent_goes_on_after_kills_while_it_works_and_while_it_waits_for_a_person(task_engine):
    engine = task_engine
    engine.start_process()
    plan = [[["count", {"number": 1, "gate": "work"}]], [["refund", {"order": "A", "amount": 5}]], "Refunded."]
    run = start_sub_agent(engine, "waiting", plan)
    engine.wait_for_note("tool 1 begins")
    engine.finish(run)  # before its task
    restart(engine)
    engine.open("work")
    tasks = BackgroundTask.objects.filter(run=run)
    wait_until(lambda: tasks.filter(status="suspended").exists(), 40, "a task that waits for a person")
    restart(engine)

    settle(AgentRun.objects.get(pk=tasks.get().child_run_id), "approve")
    wait_for_delivery(run, 1)

    assert_delivered_once(run, 1)
    assert tasks.get().result == "Refunded."
    assert len(engine.notes("refund")) == 1


@pytest.mark.drill
def test_twenty_tasks_survive_kills_at_any_moment_with_five_at_once(task_engine):
    engine = task_engine
    processes = [engine.start_process(), engine.start_process()]
    calls = [["count", {"number": number, "pause": 0.5}] for number in range(20)]
    runs = [start(engine, f"agent-{number}", calls) for number in range(3)]
    most = 0
    for _ in range(KILLS):
        until = time.monotonic() + random.uniform(1, 4)
        while time.monotonic() < until:
            running = BackgroundTask.objects.filter(status="running", run=random.choice(runs))
            most = max(most, running.count())
            time.sleep(0.05)
        victim = random.randrange(2)
        kill_worker(engine, processes[victim])
        if processes[victim].poll() is not None:
            processes[victim] = engine.start_process()
    for run in runs:
        wait_for_delivery(run, 20)

    assert 1 < most <= 5  # a busy machine may reach the limit in no look
    for run in runs:
        assert_delivered_once(run, 20)


def kill_worker(engine, process):
    """Kill a worker, which may be a fork of the process."""
    if engine.name != "process":
        engine.kill(process)
        return
    for child in psutil.Process(process.pid).children():
        child.kill()
