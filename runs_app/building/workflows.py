"""Workflows: functions that run in a thread, and Celery tasks that run as jobs, so that what came of them is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from pydantic_core import to_jsonable_python

from agents_app.registry import Entry, Kind, is_task, registry
from jobs_app import runner
from jobs_app.models import Job
from runs_app.engine.threads import run_blocking, run_db
from runs_app.exceptions import RunError

RUN_WORKFLOW = "run_workflow"
FIRST_LOOK, LONGEST_WAIT = 0.05, 1.0  # seconds between two looks at a job


async def run_workflow(entry: Entry, arguments: Mapping[str, Any], user_id: int | None) -> Any:
    """What a workflow returns; a Celery task is waited for. Raises RunFault where its job failed."""
    if not is_task(entry.target):
        return await run_blocking(entry.target, **arguments)
    said = {"key": entry.key, "arguments": to_jsonable_python(dict(arguments))}
    job = await run_db(start_workflow, said, user_id)
    return await finished(job)


def start_workflow(parameters: dict[str, Any], user_id: int | None) -> Job:
    user = get_user_model().objects.filter(pk=user_id).first() if user_id is not None else None
    return runner.enqueue(RUN_WORKFLOW, parameters, requested_by=user)


async def finished(job: Job) -> Any:
    """The result of a job, once a worker has done it. The database says when, so that no message can be missed."""
    wait = FIRST_LOOK
    while job.state not in {Job.State.DONE, Job.State.FAILED}:
        await asyncio.sleep(wait)
        wait = min(wait * 1.5, LONGEST_WAIT)
        await run_db(job.refresh_from_db)
    if job.state == Job.State.FAILED:
        raise RunError(f"The workflow failed: {job.error}", "workflow_failed")
    return job.result


@runner.job_handler(RUN_WORKFLOW)
def do_workflow(job: Job) -> Any:
    """Run a Celery task's body in the worker that took the job; a worker that dies makes another one begin anew."""
    key = job.parameters["key"]
    entry = registry.get(Kind.WORKFLOW, key)
    if entry is None:
        raise LookupError(f"No workflow is registered as '{key}'.")
    return to_jsonable_python(entry.target.run(**job.parameters["arguments"]), fallback=str)
