"""Concurrent run requests with one `Idempotency-Key`."""

import pytest

from runs_app.engine.start import idempotency
from runs_app.engine.start.concurrency_limits import TooManyRuns
from runs_app.models import AgentRun
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, member
from tests.runs import DEMO, LONG, SLOW, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


def test_concurrent_requests_with_one_key_create_one_run():
    agent, editor = AgentFactory(model=DEMO), member("editor")

    runs = run_concurrently([lambda: start_run(agent, editor, key="a").pk] * 5)

    assert len(set(runs)) == 1
    assert wait_for_end(AgentRun.objects.get()).status == "succeeded"


def test_a_key_that_was_used_meanwhile_returns_its_run_at_the_limit_of_runs(settings, monkeypatch):
    settings.RUNS_PER_USER = 1
    agent, editor = AgentFactory(model=SLOW), member("editor")
    create_run, first = idempotency.create_run, []

    def create_after_another(*arguments, **columns):
        if not first:
            first.append(create_run(*arguments, **columns))
        return create_run(*arguments, **columns)

    monkeypatch.setattr(idempotency, "create_run", create_after_another)

    assert start_run(agent, editor, LONG, key="a") == first[0]
    with pytest.raises(TooManyRuns):
        start_run(agent, editor, LONG, key="b")
