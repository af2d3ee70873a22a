"""What the tests of runs share."""

from collections.abc import Iterator
from typing import Any

import pytest

from runs_app.engine import running_engine
from runs_app.models import AgentRun
from tests.served import wait_until


@pytest.fixture
def engine_at_rest(transactional_db: None) -> Iterator[None]:
    """A database that the engine's threads see too, and that they have left when the next test empties it."""
    yield
    engine = running_engine()
    if engine is not None:
        for run_id in list(engine.tasks):
            engine.cancel(run_id)
        wait_until(lambda: not engine.tasks and not engine.writer.held, what="the end of every run")


def ended(run: AgentRun, seconds: float = 20) -> AgentRun:
    """The run once it is over."""

    def is_over() -> Any:
        run.refresh_from_db()
        return run.is_over

    wait_until(is_over, seconds, f"the end of run {run.pk}")
    return run
