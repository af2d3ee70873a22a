"""Contents of items, answers, scores and errors stand in rows, and in no log line and no metric."""

import logging

import pytest
from pydantic_ai.models.function import FunctionModel

from agentcms.logs import JSONFormatter, TextFormatter
from agents_app.registry import Entry, Kind, registry, tool
from evals_app.scorers.changes import create_scorer
from runs_app.providers import cached_providers
from tests.evals_app.experiment_runs import make_dataset, run_experiment
from tests.evals_app.scorers.judge_model import Judge
from tests.factories import AgentFactory, UserFactory, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

MARKER = "Xylophone7391"


def fail(*arguments, **options):
    raise ValueError(f"It quotes {MARKER}.")


async def fail_to_stream(messages, info):
    fail()
    yield ""


@pytest.fixture
def scorers():
    """Register scorers and models that answer with the marker or fail with it. Return the keys of the scorers."""
    judge = Judge()
    judge.answer["reason"] = f"Mentions {MARKER}."
    broken = FunctionModel(fail, stream_function=fail_to_stream)
    entries = [
        Entry(Kind.MODEL_PROVIDER, "judge", "Judge", target=lambda name, choice: FunctionModel(judge.respond)),
        Entry(Kind.MODEL_PROVIDER, "broken", "Broken", target=lambda name, choice: broken),
        Entry(Kind.SCORER, "fails", "Fails", target=fail),
    ]
    for entry in entries:
        registry.add(entry)
    cached_providers.invalidate()
    snapshot = {"type": "llm-judge", "instructions": f"Look for {MARKER}."}
    for provider in ("judge", "broken"):
        model = {"provider": provider, "name": "one"}
        create_scorer({**snapshot, "name": MARKER, "model": model}, owner_id="", author="ann", id=f"by-{provider}")
    yield ["by-judge", "by-broken", "fails", "exact"]
    for entry in entries:
        registry.remove(entry.kind, entry.key)
    cached_providers.invalidate()


@pytest.fixture
def agents():
    """Return an agent whose tool fails with the marker, and one whose provider does."""
    tool(key="quote", description=f"Quote {MARKER}.")(lambda text: fail())
    yield [
        AgentFactory(id="clerk", model=DEMO, instructions=f"Say {MARKER}.", tools=["quote"]),
        AgentFactory(id="broken", model={"provider": "broken", "name": "one"}),
    ]
    registry.remove(Kind.TOOL, "quote")


def test_no_log_line_and_no_metric_has_the_contents(scorers, agents, client, caplog):
    caplog.set_level(logging.INFO)
    item = {
        "input": f"Use quote for {MARKER}",
        "ground_truth": MARKER,
        "metadata": {"note": MARKER},
        "request_context": {"note": MARKER},
        "expected_trajectory": [{"toolName": "quote", "args": {"text": MARKER}}],
    }
    dataset = make_dataset(item, {**item, "scorer_keys": [MARKER.lower()]})

    experiments = [run_experiment(dataset, member("editor"), agent, scorerIds=scorers) for agent in agents]
    run_experiment(dataset, member("editor"), agents[0])  # the scorer of the second item is unknown

    answered, failed = (experiment.results.first() for experiment in experiments)
    assert failed.error is not None
    entries = {entry["scorerId"]: entry for entry in answered.scores}
    assert MARKER in str(entries["by-judge"]["reason"])
    assert all(MARKER in entries[key]["error"] for key in ("by-broken", "fails"))
    assert MARKER in answered.output
    log = "\n".join(form().format(record) for record in caplog.records for form in (TextFormatter, JSONFormatter))
    assert "The scorer 'fails' failed: ValueError." in log
    assert "The tool 'quote' failed." in log
    assert MARKER.lower() not in log.lower()
    client.force_login(UserFactory(is_staff=True))
    metrics = client.get("/metrics").content.decode()
    assert "agentcms_runs_ended_total" in metrics
    assert MARKER.lower() not in metrics.lower()
