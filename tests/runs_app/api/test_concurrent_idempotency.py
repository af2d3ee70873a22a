"""Concurrent run requests with one `Idempotency-Key`."""

import pytest

from runs_app.models import AgentRun
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, member
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


def test_concurrent_requests_with_one_key_create_one_run():
    agent, editor = AgentFactory(model=DEMO), member("editor")

    runs = run_concurrently([lambda: start_run(agent, editor, key="a").pk] * 5)

    assert len(set(runs)) == 1
    assert wait_for_end(AgentRun.objects.get()).status == "succeeded"
