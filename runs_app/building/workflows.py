"""Workflows: functions that run in this process, and Celery tasks that run as jobs."""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID, uuid5

from django.contrib.auth import get_user_model
from pydantic_core import to_jsonable_python

from agentcms.db.outages import OUTAGE_ERRORS
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.registry import Entry, Kind, is_task, registry
from jobs_app import runner
from jobs_app.models import Job
from runs_app.building.tool_messages import UNKNOWN_ERROR_MESSAGE, error_message, text_of_unknown_value
from runs_app.engine.thread_pools import run_db, run_function
from runs_app.events.stream_chunks import to_storable_json
from runs_app.exceptions import RunError

log = logging.getLogger(__name__)

JOB_DELETED_MESSAGE = "The workflow failed: its job was deleted."

RUN_WORKFLOW = "run_workflow"
WORKFLOW_NAMESPACE = UUID("5b0a0f7e-8f0c-5d3a-9a51-2d6f4f7a1c22")  # of the ids of jobs with an idempotency key
MIN_JOB_POLL_INTERVAL, MAX_JOB_POLL_INTERVAL = 0.05, 1.0  # seconds


class WorkflowError(Exception):
    """A failure of a workflow. The calling model reads the message."""


async def run_workflow(
    entry: Entry,
    arguments: JSONMapping,
    user_id: int | None,
    idempotency_key: str | None = None,
    run_id: UUID | None = None,
) -> JSONValue:
    """Return the result of a workflow. Raise RunError if its job fails.

    A second call with the same idempotency key finds the job of the first. By the ID of the run, its job is deleted
    with the data of a person.
    """
    if not is_task(entry.target):
        return await run_function(entry.target, arguments)
    # A model may write a NUL, which PostgreSQL does not store.
    parameters = {"key": entry.key, "arguments": to_storable_json(to_jsonable_python(dict(arguments)))}
    parameters |= {"run": str(run_id)} if run_id is not None else {}
    job = await run_db(start_workflow, parameters, user_id, idempotency_key)
    return await wait_for_job(job)


def start_workflow(parameters: JSONObject, user_id: int | None, idempotency_key: str | None = None) -> Job:
    job_id = uuid5(WORKFLOW_NAMESPACE, idempotency_key) if idempotency_key else None
    if job_id is not None and (job := Job.objects.filter(pk=job_id).first()) is not None:
        return job
    user = get_user_model().objects.filter(pk=user_id).first() if user_id is not None else None
    return runner.enqueue(RUN_WORKFLOW, parameters, requested_by=user, job_id=job_id)


async def wait_for_job(job: Job) -> JSONValue:
    """Return the result of a job after it is done. It polls the database, because messages may be lost.

    While the database is unavailable it waits on: the worker finishes the job, and another call would repeat it.
    """
    interval = MIN_JOB_POLL_INTERVAL
    while job.state not in {Job.State.DONE, Job.State.FAILED}:
        await asyncio.sleep(interval)
        interval = min(interval * 1.5, MAX_JOB_POLL_INTERVAL)
        try:
            await run_db(job.refresh_from_db)
        except Job.DoesNotExist:
            raise RunError(JOB_DELETED_MESSAGE, "workflow_failed") from None
        except OUTAGE_ERRORS as error:
            log.warning("The database is not available. A run keeps waiting for job %s: %s", job.pk, error)
    if job.state == Job.State.FAILED:
        raise RunError(f"The workflow failed: {failure_reason(job)}", "workflow_failed")
    return job.result


def failure_reason(job: Job) -> str:
    """Return why the job of a workflow failed, without the class of the error that jobs add for staff."""
    name, separator, message = job.error.partition(": ")
    if not separator or not name.isidentifier():
        return job.error
    return message if name == WorkflowError.__name__ else UNKNOWN_ERROR_MESSAGE


@runner.job_handler(RUN_WORKFLOW, "Workflow of a run")
def run_workflow_job(job: Job) -> JSONValue:
    """Execute a Celery task in the worker of the job. If the worker dies, another one starts again."""
    key = job.parameters["key"]
    entry = registry.get(Kind.WORKFLOW, key)
    if entry is None:
        raise WorkflowError(f"No workflow is registered as '{key}'.")
    try:
        return to_storable_json(entry.target.run(**job.parameters["arguments"]), fallback=text_of_unknown_value)
    except Exception as error:
        if runner.is_transient(error):
            raise
        raise WorkflowError(error_message(error)) from error
