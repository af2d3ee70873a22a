"""The job of a background task. It occupies no thread of its worker: the event loop of the runs executes it."""

from __future__ import annotations

from importlib import import_module

from jobs_app.models import Job
from jobs_app.runner import CONTINUES, job_handler
from runs_app.background.slots import RUN_TASK
from runs_app.engine.engine import get_engine


@job_handler(RUN_TASK)
def run_background_task(job: Job) -> object:
    """Execute a background task on the event loop, which finishes the job."""
    # The module imports pydantic-ai, which is heavy.
    execute_job = import_module("runs_app.background.execution").execute_job
    engine = get_engine()
    engine.start_background_work(execute_job(engine, job))
    return CONTINUES
