"""Runs as tests start them and wait for them."""

from typing import Any

from runs_app.engine import start
from runs_app.engine.engine import find_engine
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents
from tests.served import wait_until

DEMO = {"provider": "demo", "name": "echo", "delay": 0}
SLOW = {"provider": "demo", "name": "echo", "delay": 0.05}
LONG = "word " * 2000  # with SLOW it is answered for a hundred seconds


def begin(agent: Any, user: Any, messages: Any = "Hello there", **said: Any) -> AgentRun:
    """Start a run of the live version."""
    return start.start_run(stored_agents.get(agent.pk, user=user), user=user, messages=messages, **said)


def ended(run: AgentRun, seconds: float = 30) -> AgentRun:
    """The run once it is over."""

    def is_finished() -> Any:
        run.refresh_from_db()
        return run.is_finished

    wait_until(is_finished, seconds, f"the end of run {run.pk}")
    return run


def speaks(run: AgentRun) -> AgentRun:
    """The run once it has begun to answer."""
    wait_until(lambda: run.events.filter(data__type="text-delta").exists(), 30, f"the first words of run {run.pk}")
    return run


def chunks(run: AgentRun, *kinds: str) -> list[dict[str, Any]]:
    """What the events of a run say, those of some types alone."""
    found = run.events.order_by("number").values_list("data", flat=True)
    return [data for data in found if not kinds or data["type"] in kinds]


def come_to_rest() -> None:
    """Stop what still runs in this process and wait until nobody speaks to the database."""
    engine = find_engine()
    if engine is not None:
        for run_id in list(engine.tasks):
            engine.cancel(run_id)
        wait_until(lambda: not engine.tasks and not engine.writer.runs, what="the end of every run")
