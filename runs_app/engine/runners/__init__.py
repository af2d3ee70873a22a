"""Runners: each has the durable runs executed by some process. RUN_ENGINE selects one.

The row of a run is the truth: a runner only has to see to it that some process calls `Engine.offer` at least once.
Claims make further calls harmless.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from runs_app.engine.engine import Engine

RUNNERS = {
    "process": "runs_app.engine.runners.process.ProcessRunner",
    "celery": "runs_app.engine.runners.celery.CeleryRunner",
    "dbos": "runs_app.engine.runners.dbos.DbosRunner",
    "inngest": "runs_app.engine.runners.inngest.InngestRunner",
    "temporal": "runs_app.engine.runners.temporal.TemporalRunner",
}


class Runner(Protocol):
    """A way of having durable runs executed."""

    def find_local_engine(self) -> Engine | None:
        """Return the engine of this process if it should execute a new run, or None to dispatch the run."""

    def dispatch(self, run_id: UUID) -> bool:
        """Have a queued run executed soon. Return False if no other process was notified of it."""

    def continue_here(self, run_id: UUID) -> None:
        """Execute the next segment of a run that is not durable in this process."""

    def start_worker(self) -> None:
        """Receive the messages of this runner, because this process is a worker that executes runs."""

    def take_next(self) -> None:
        """Look for queued runs, because this process has a free slot."""

    def stop(self, run_id: UUID) -> None:
        """Cancel a run in the process that executes it."""

    def drain(self) -> None:
        """Hand over all durable runs of this process, which stops."""


def find_runner_class() -> type[Runner]:
    """Return the class that RUN_ENGINE selects. Raise ImproperlyConfigured if it cannot be imported."""
    name = settings.RUN_ENGINE
    try:
        runner_class: type[Runner] = import_string(RUNNERS.get(name, name))
    except ImportError as error:
        if name in RUNNERS and isinstance(error, ModuleNotFoundError):
            message = f"RUN_ENGINE={name} needs the package {error.name}. Install it: scripts/environment {name}"
        else:
            message = (
                f"RUN_ENGINE={name} cannot be imported: {error}. Write the path of a class: shop.engines.QueueRunner"
            )
        raise ImproperlyConfigured(message) from error
    return runner_class


def missing_methods(runner_class: object) -> list[str]:
    """Return the names of the methods of `Runner` that a class does not have."""
    return [
        name for name in vars(Runner) if not name.startswith("_") and not callable(getattr(runner_class, name, None))
    ]


@cache
def get_runner() -> Runner:
    """Return the runner that RUN_ENGINE selects. Raise ImproperlyConfigured if it cannot be imported."""
    return find_runner_class()()
