"""The trace of an experiment: from the request that starts it to its runs, over its job."""

import pytest

from tests.api_client import Caller
from tests.collector import attributes
from tests.evals_app.experiment_runs import make_dataset, work
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

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
