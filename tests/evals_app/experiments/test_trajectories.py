"""Trajectories of agents that call sub-agents: the calls of a sub-agent follow the call of their agent."""

import json
from copy import deepcopy

import pytest

from evals_app.scorers.changes import create_scorer
from evals_app.scorers.results import answer_of_run, calls_of_run
from evals_app.traces import spans_of_run, trajectory_of
from tests.evals_app.experiment_runs import make_dataset, run_experiment
from tests.factories import AgentFactory, member
from tests.runs import DEMO
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.usefixtures("idle_engine")

NESTED = ["agent-middle", "agent-helper", "calculator", "current-time"]


@pytest.fixture
def agent():
    """Return an agent above two levels of sub-agents, of which the lowest has a tool."""
    AgentFactory(id="helper", model=DEMO, tools=["calculator"])
    AgentFactory(id="middle", model=DEMO, agents=["helper"])
    return AgentFactory(model=DEMO, agents=["middle"], tools=["current-time"])


def trajectory(pk, **config):
    create_scorer({"name": pk, "type": "trajectory", "presetConfig": config}, owner_id="", author="ann", id=pk)


@pytest.mark.parametrize(
    ("config", "expected", "score"),
    [
        ({"mode": "strict"}, NESTED, 1.0),
        ({"mode": "strict"}, ["agent-middle", "current-time", "agent-helper", "calculator"], 0.25),
        ({"mode": "superset"}, ["calculator"], 1.0),
        ({"mode": "subset"}, ["agent-middle", "current-time"], 0.5),
        ({"maxSteps": 3}, NESTED, 0.0),
        ({"forbiddenTools": ["calculator"]}, NESTED, 0.0),
        (
            {"mode": "superset", "arguments": "compare"},
            [{"toolName": "calculator", "args": {"expression": "6*7"}}],
            1.0,
        ),
        (
            {"mode": "superset", "arguments": "compare"},
            [{"toolName": "calculator", "args": {"expression": "6*8"}}],
            0.0,
        ),
    ],
)
def test_the_calls_of_sub_agents_are_part_of_a_trajectory(agent, config, expected, score):
    trajectory("path", **config)
    prompt = json.dumps({"prompt": 'agent-helper calculator {"expression": "6*7"}'})
    item = {
        "input": f"Use agent-middle with {prompt} and current-time",
        "expected_trajectory": {"steps": expected},
    }

    experiment = run_experiment(make_dataset(item), member("editor"), agent, scorerIds=["path"])

    result = experiment.results.get()
    assert result.run.children.get().children.count() == 1
    assert result.score_of("path") == score, result.scores
    assert answer_of_run(result.run).tokens == result.tokens > 0


def test_the_trajectory_of_a_trace_is_one_to_expect(agent):
    trajectory("path", mode="strict", arguments="compare")
    prompt = json.dumps({"prompt": 'agent-helper calculator {"expression": "6*7"}'})
    editor = member("editor")
    first = run_experiment(make_dataset({"input": f"Use agent-middle with {prompt}"}), editor, agent)
    run = first.results.get().run
    expected = trajectory_of([*spans_of_run(run, str(run.pk))])
    (middle,) = expected["steps"]
    assert middle["children"][0]["children"][0]["name"] == "agent-helper"
    other = deepcopy(expected)
    other["steps"][0]["children"][0]["children"][0]["children"][0]["children"][0]["toolResult"] = "43"

    items = [{"input": f"Use agent-middle with {prompt}", "expected_trajectory": value} for value in (expected, other)]
    again = run_experiment(make_dataset(*items, pk="again"), editor, agent, scorerIds=["path"])

    scores = [result.score_of("path") for result in again.results.order_by("item_id")]
    assert scores == [1.0, 0.0]


def test_the_calls_of_many_sub_agents_are_read_by_two_queries_for_each_level(django_assert_num_queries):
    calls = [("tool-call", {"toolCallId": key, "toolName": key, "args": {}}) for key in "abc"]
    run = RunFactory(chunks=[("step-start", {}), *calls])
    for key in "abc":
        child = RunFactory(parent=run, root_id=run.pk, parent_call_id=key, chunks=calls)
        RunFactory(parent=child, root_id=run.pk, parent_call_id="b", chunks=calls[:1])

    with django_assert_num_queries(6):
        uses, steps = calls_of_run(run)

    assert "".join(f"{use.name}{use.depth}" for use in uses) == "".join(f"{key}0a1b1a2c1" for key in "abc")
    assert steps == 1
