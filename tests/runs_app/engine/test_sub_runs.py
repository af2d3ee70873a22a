"""Runs of sub-agents."""

import asyncio
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from agents_app.editing.archiving import archive_locked
from runs_app.child_results import SubAgentError
from runs_app.engine import run_ends, sub_runs
from runs_app.engine.engine import get_engine
from runs_app.models import AgentRun
from tests.factories import AgentFactory, member
from tests.runs import DEMO, LONG, SLOW, chunks, start_run, wait_for_end
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def editor():
    return member("editor")


def result(run):
    return chunks(run, "tool-result")[0]["payload"]


def test_a_sub_agent_answers_in_its_own_run(editor):
    AgentFactory(id="helper", model=DEMO)
    agent = AgentFactory(model=DEMO, agents=["helper"])

    run = wait_for_end(start_run(agent, editor, "Use agent-helper for this"))

    child = run.children.get()
    assert (child.agent_key, child.status, child.parent_call_id) == ("helper", "succeeded", result(run)["toolCallId"])
    assert result(run)["result"] == child.output
    assert (child.requested_by, child.owner_id) == (editor, "")
    assert chunks(child, "finish")
    assert run.usage != child.usage or run.usage["totalTokens"] > 0


def test_an_agent_in_code_can_be_a_sub_agent(editor):
    run = wait_for_end(
        start_run(AgentFactory(model=DEMO, agents=["proofreader"]), editor, "Use agent-proofreader for this")
    )

    assert (run.children.get().target, run.children.get().agent) == ("code", None)


def test_a_sub_agent_runs_its_current_live_version(editor):
    helper = AgentFactory(id="helper", model=DEMO)
    agent = AgentFactory(model=DEMO, agents=["helper"])
    helper.edit({"instructions": "Second."})

    run = wait_for_end(start_run(agent, editor, "Use agent-helper for this"))

    assert run.children.get().version_number == 2


def test_a_circular_call_is_refused_and_the_agent_answers(editor):
    AgentFactory(id="b", model=DEMO, agents=["a"])
    agent = AgentFactory(id="a", model=DEMO, agents=["b"])
    prompt = "Use agent-b with Use agent-a"

    run = wait_for_end(start_run(agent, editor, prompt))

    assert run.status == "succeeded"
    child = run.children.get()
    assert child.children.count() == 0
    refused = result(child)
    assert refused["isError"]
    assert "cannot be called from here: it would call itself" in refused["result"]


def test_sub_agents_can_be_nested(editor):
    depth = 12
    AgentFactory(id=f"a{depth}", model=DEMO)
    for level in reversed(range(depth)):
        agent = AgentFactory(id=f"a{level}", model=DEMO, agents=[f"a{level + 1}"])

    run = wait_for_end(start_run(agent, editor, " with ".join(f"Use agent-a{level}" for level in range(1, depth + 1))))

    assert run.status == "succeeded"
    assert AgentRun.objects.filter(status="succeeded").count() == depth + 1


def test_the_number_of_sub_agent_calls_is_limited(editor, monkeypatch):
    monkeypatch.setattr(sub_runs, "MAX_SUB_RUNS", 0)
    AgentFactory(id="helper", model=DEMO)

    run = wait_for_end(start_run(AgentFactory(model=DEMO, agents=["helper"]), editor, "Use agent-helper for this"))

    assert "has made 0 sub-agent calls" in result(run)["result"]


def test_a_failed_sub_agent_is_reported_and_the_agent_answers(editor):
    AgentFactory(id="helper", model={"provider": "nobody", "name": "nothing"})

    run = wait_for_end(start_run(AgentFactory(model=DEMO, agents=["helper"]), editor, "Use agent-helper for this"))

    assert run.status == "succeeded"
    assert run.children.get().status == "failed"
    assert "'helper' could not answer" in result(run)["result"]


def test_a_sub_agent_of_another_owner_is_not_found(editor):
    AgentFactory(id="theirs", model=DEMO, owner_id="them")
    agent = AgentFactory(model=DEMO, agents=["theirs"])

    run = wait_for_end(start_run(agent, editor, "Use agent-theirs for this"))

    assert (run.status, run.children.count()) == ("succeeded", 0)
    assert [warning["key"] for warning in run.warnings] == ["theirs"]


def test_an_archived_sub_agent_is_not_called(editor):
    helper = AgentFactory(id="helper", model=DEMO)
    agent = AgentFactory(model=DEMO, agents=["helper"])
    archive_locked(helper)

    run = wait_for_end(start_run(agent, editor, "Use agent-helper for this"))

    assert (run.status, run.children.count()) == ("succeeded", 0)
    assert [(warning["field"], warning["key"]) for warning in run.warnings] == [("agents", "helper")]


def test_a_sub_agent_that_is_archived_meanwhile_is_not_called(editor):
    helper = AgentFactory(id="helper", model=DEMO)
    run = start_run(AgentFactory(model=DEMO, agents=["helper"]), editor, "Hi")
    archive_locked(helper)

    for create in (sub_runs.create_child, partial(sub_runs.find_or_create_child, "here:1:a")):
        with pytest.raises(SubAgentError, match="The agent 'helper' is archived"):
            create(run, "helper", "Hi", "call", {})
    wait_for_end(run)


def test_cancelling_a_run_cancels_its_sub_runs(editor):
    AgentFactory(id="helper", model=SLOW)
    run = start_run(AgentFactory(model=DEMO, agents=["helper"]), editor, f"Use agent-helper with {LONG}")
    wait_until(lambda: run.children.filter(status="running").exists(), 30)

    run_ends.cancel_run(run.pk)

    assert wait_for_end(run).status == "cancelled"
    assert wait_for_end(run.children.get()).status == "cancelled"


def test_cancelling_a_sub_run_lets_the_agent_answer(editor):
    AgentFactory(id="helper", model=SLOW)
    run = start_run(AgentFactory(model=DEMO, agents=["helper"]), editor, f"Use agent-helper with {LONG}")
    wait_until(lambda: run.children.filter(status="running").exists(), 30)

    run_ends.cancel_run(run.children.get().pk)

    assert wait_for_end(run).status == "succeeded"
    assert run.children.get().status == "cancelled"
    assert "'helper' was stopped" in result(run)["result"]


@pytest.mark.parametrize(
    ("is_durable", "function"), [(False, "create_child"), (True, "find_or_create_child")], ids=["usual", "durable"]
)
def test_a_sub_run_is_cancelled_with_its_parent_before_it_starts(editor, monkeypatch, is_durable, function):
    created, released = threading.Event(), threading.Event()

    def create_slowly(*args):
        child = create_child(*args)
        created.set()
        released.wait(60)
        return child

    create_child = getattr(sub_runs, function)
    monkeypatch.setattr(sub_runs, function, create_slowly)
    AgentFactory(id="helper", model=DEMO)
    agent = AgentFactory(model=DEMO, agents=["helper"])
    run = start_run(agent, editor, "Use agent-helper for this", options={"durable": is_durable})
    assert created.wait(30)

    task = get_engine().run_tasks[run.pk]  # the engine forgets it at its end
    run_ends.cancel_run(run.pk)
    wait_until(lambda: task.cancelling() or task.done(), 30)
    released.set()

    assert wait_for_end(run).status == "cancelled"
    child = wait_for_end(run.children.get())
    assert (child.status, chunks(child)[-1]["type"]) == ("cancelled", "abort")


def test_a_sub_run_that_is_deleted_while_another_process_executes_it_is_reported(editor, monkeypatch):
    monkeypatch.setattr(sub_runs, "CHILD_POLL_INTERVAL", 0.01)
    child = AgentRun(agent_key="helper", status=AgentRun.Status.RUNNING, holder="another process")
    engine = SimpleNamespace(holder="this process", tasks={}, is_stopping=False)

    with pytest.raises(SubAgentError, match="The agent was deleted while it worked"):
        asyncio.run(sub_runs.await_durable_child(engine, child, execute=None))
