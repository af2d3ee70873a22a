"""Requests with one `Idempotency-Key` that come at the same time make one run."""

import pytest

from runs_app.models import AgentRun
from tests.concurrently import together
from tests.factories import AgentFactory, member
from tests.runs import DEMO, begin, ended

pytestmark = pytest.mark.usefixtures("engine_at_rest")


def test_concurrent_requests_with_one_key_create_one_run():
    agent, editor = AgentFactory(model=DEMO), member("editor")

    runs = together([lambda: begin(agent, editor, key="a").pk] * 5)

    assert len(set(runs)) == 1
    assert ended(AgentRun.objects.get()).status == "succeeded"
