"""Functions that start runs and wait for them."""

from typing import Any

from runs_app.engine.engine import find_engine
from runs_app.engine.start import run as start
from runs_app.engine.start.idempotency import CallKey
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents
from tests.served import wait_until

DEMO = {"provider": "demo", "name": "echo", "delay": 0}
SLOW = {"provider": "demo", "name": "echo", "delay": 0.05}
LONG = "word " * 2000  # takes a hundred seconds to answer with SLOW


def start_run(
    agent: Any, user: Any, messages: Any = "Hello there", key: str = "", route: str = "", **options: Any
) -> AgentRun:
    """Start a run of the live version."""
    agent = stored_agents.get(agent.pk, user=user)
    return start.start_run(agent, user=user, messages=messages, key=CallKey(key, route), **options)


def wait_for_end(run: AgentRun, seconds: float = 30) -> AgentRun:
    """Wait for the end of the run and return it."""

    def is_finished() -> Any:
        run.refresh_from_db()
        return run.is_finished

    wait_until(is_finished, seconds, f"the end of run {run.pk}")
    return run


def wait_for_text(run: AgentRun) -> AgentRun:
    """Wait for the first text of the run and return it."""
    wait_until(lambda: run.events.filter(data__type="text-delta").exists(), 30, f"the first words of run {run.pk}")
    return run


def chunks(run: AgentRun, *kinds: str) -> list[dict[str, Any]]:
    """Return the data of the events of a run, optionally of some types only."""
    events = run.events.order_by("number").values_list("data", flat=True)
    return [data for data in events if not kinds or data["type"] in kinds]


def wait_for_engine() -> None:
    """Cancel all runs of this process and wait until their last write."""
    engine = find_engine()
    if engine is None:
        return
    cancelled: set[Any] = set()

    def is_idle() -> bool:
        for run_id in {*engine.run_tasks} - cancelled:  # a run that was submitted last may get its task later
            engine.cancel(run_id)
            cancelled.add(run_id)
        for work in [*engine.background_work]:  # of background tasks
            engine.loop.call_soon_threadsafe(work.cancel)
        return not engine.run_tasks and not engine.background_work and not engine.writer.runs

    wait_until(is_idle, 60, "the end of every run")
