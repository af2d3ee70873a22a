"""Mocks of tools in durable runs: after the death of a process, no mock answers twice."""

import uuid

from runs_app.engine.start.run import ExperimentItem
from runs_app.models import AgentRun
from tests.factories import AgentFactory
from tests.runs import chunks

ONE = {"number": 1}
GATED = {"number": 2, "gate": "two"}


def results_of(run):
    return [chunk["payload"]["result"] for chunk in chunks(run, "tool-result")]


def test_a_mock_that_has_answered_a_sub_agent_does_not_answer_again(any_engine):
    engine = any_engine
    process = engine.start_process()
    model = {"provider": "planned", "name": "plan", "plan": [[["count", ONE]], "Child."]}
    AgentFactory(id="child", model=model, tools=["count"])
    plan = [[["agent-child", {"prompt": "Go"}]], [["count", GATED]], [["count", ONE]], "Done."]
    item = ExperimentItem(uuid.uuid4(), {"toolMocks": [{"toolName": "count", "args": ONE, "output": "mocked"}]})
    run = engine.start(plan, agents=["child"], experiment=item)
    engine.wait_for_note("tool 2 begins")

    engine.kill(process)
    engine.open("two")
    engine.start_process()

    done = engine.finish(run)
    child = AgentRun.objects.get(parent=run)
    assert (done.status, done.fence, results_of(child)) == ("succeeded", 2, ["mocked"])
    assert results_of(done)[1:] == ["result 2", "result 1"]


def test_parallel_calls_get_the_same_mocks_again(any_engine):
    engine = any_engine
    process = engine.start_process()
    plan = [[["count", ONE], ["count", ONE], ["count", GATED]], "Done."]
    mocks = [{"toolName": "count", "args": ONE, "output": output} for output in ("first", "second")]
    run = engine.start(plan, experiment=ExperimentItem(uuid.uuid4(), {"toolMocks": mocks}))
    engine.wait_for_note("tool 2 begins")

    engine.kill(process)
    engine.open("two")
    engine.start_process()

    done = engine.finish(run)
    assert (done.status, sorted(results_of(done))) == ("succeeded", ["first", "result 2", "second"])
    assert engine.notes("tool 1") == []
