"""Fixtures of background tasks: a model that follows a plan, and a worker in this process."""

from importlib import import_module

import pytest

import runs_app.tasks  # noqa: F401  registers the handlers of jobs
from agents_app.registry import tool
from jobs_app import runner
from runs_app.calling import current
from runs_app.models import BackgroundTask
from runs_app.providers import cached_providers
from tests.durable import agent_tools
from tests.factories import AgentFactory, member
from tests.runs import start_run, wait_for_end
from tests.served import wait_until


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Register the planned model and its tools. Return a function that reads what the tools noted."""
    monkeypatch.setenv("DURABLE_FOLDER", str(tmp_path))
    agent_tools.register()
    cached_providers.invalidate()
    path = tmp_path / "notes"
    return lambda: path.read_text().splitlines() if path.exists() else []


AGENT_FIELDS = ("agents", "mcp_clients", "owner_id")


class Tasks:
    """Background tasks of new agents whose model follows a plan."""

    def __init__(self, open_gate) -> None:
        self.user = member("editor")
        self.open = open_gate

    def start(self, calls, *, config=None, tools=("count",), text="Begin", answer="Done.", agent=None, **options):
        """Start a run whose first answer makes these calls."""
        model = {"provider": "planned", "name": "plan", "plan": [calls, answer]}
        fields = {name: options.pop(name) for name in AGENT_FIELDS if name in options}
        agent = agent or AgentFactory(model=model, tools=[*tools], background_tasks=config, **fields)
        return start_run(agent, self.user, text, **options)

    def run(self, calls, **options):
        """Start a run and wait for its end."""
        return wait_for_end(self.start(calls, **options))

    def wait(self, run, *statuses, seconds=15):
        """Wait until the tasks of a run have these statuses, and return them in the order of their calls."""
        tasks = BackgroundTask.objects.filter(run=run).order_by("number")
        expected = list(statuses) or None

        def are_there():
            rows = [*tasks.all()]
            is_ended = bool(rows) and all(task.is_finished for task in rows)
            return [task.status for task in rows] == expected if expected else is_ended

        wait_until(
            are_there, seconds, lambda: f"the tasks {expected}; there are {[*tasks.values_list('status', 'error')]}"
        )
        return [*tasks.all()]


@pytest.fixture
def tasks(idle_engine, notes, tmp_path, monkeypatch):
    """Let this process execute background tasks."""
    import_module("runs_app.background.execution")  # heavy: a busy machine takes longer than the tests wait
    monkeypatch.setattr(runner, "send_job", lambda job_id: runner.run_claimed(str(job_id)))

    @tool("slow-report", background=True)
    def slow_report(number: int, gate: str = "") -> str:
        """Note the call, wait for a gate, and return a report."""
        agent_tools.note(f"report {number} attempt {current().attempt}")
        agent_tools.wait_for_gate(gate)
        return f"report {number}"

    yield Tasks(lambda gate: (tmp_path / f"{gate}.open").touch())
    from agents_app.registry import Kind, registry

    registry.remove(Kind.TOOL, "slow-report")
