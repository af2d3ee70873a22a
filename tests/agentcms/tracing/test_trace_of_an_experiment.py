"""The trace of an experiment: from the request that starts it to its runs, over its job."""

import pytest

from evals_app.experiments import jobs
from tests.api_client import Caller
from tests.collector import attributes
from tests.evals_app.experiment_runs import make_dataset, work
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, SLOW

pytestmark = pytest.mark.usefixtures("idle_engine")


def test_request_job_run_and_scorer_are_one_trace_without_contents(flushed):
    AgentFactory(id="clerk", model=DEMO, instructions="")
    make_dataset({"input": "planted-question", "ground_truth": "planted-truth"}, scorer_keys=["exact"])

    started = Caller(api_key(member("editor"))).post(
        "/api/datasets/support/experiments", {"targetType": "agent", "targetId": "clerk"}
    )
    work()
    collector = flushed()

    (run,) = collector.named("run")
    assert attributes(run)["agentcms.experiment.id"] == started.body["id"]
    names = ("POST api/datasets/<str:dataset_id>/experiments", "job run_experiment", "run", "scorer exact")
    assert len({span.trace_id for name in names for span in collector.named(name)}) == 1
    assert all(collector.named(name) for name in names)
    assert b"planted" not in b"".join(span.SerializeToString() for span in collector.spans)


def test_one_trace_continues_over_several_slices_of_the_job(flushed, monkeypatch):
    monkeypatch.setattr(jobs, "SLICE", 0.5)
    AgentFactory(id="clerk", model=SLOW, instructions="")
    words = "word " * 30  # takes more than a slice to answer
    make_dataset(words, words)

    Caller(api_key(member("editor"))).post(
        "/api/datasets/support/experiments", {"targetType": "agent", "targetId": "clerk", "maxConcurrency": 1}
    )
    work()
    collector = flushed()

    (request,) = collector.named("POST api/datasets/<str:dataset_id>/experiments")
    slices, runs = collector.named("job run_experiment"), collector.named("run")
    assert len(slices) >= 2
    assert len(runs) == 2
    assert len({run.parent_span_id for run in runs}) == 2  # each began in a slice of its own
    assert {span.trace_id for span in (*slices, *runs)} == {request.trace_id}
