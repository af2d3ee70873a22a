"""Workflows that run as jobs."""

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from celery import shared_task
from django.db import InterfaceError, OperationalError

from access_app.role import Role
from agents_app.registry import Kind, registry, workflow
from jobs_app import runner
from jobs_app.models import Job
from runs_app.building.agent import build_agent
from runs_app.building.workflows import RUN_WORKFLOW, run_workflow, start_workflow
from runs_app.exceptions import RunError
from tests.factories import member
from tests.operations.running_copy import wait_for_jobs
from tests.runs_app.conftest import answer

DEMO = {"provider": "demo", "name": "echo", "delay": 0}
COUNTED = {"a": 2, "b": 1}


@pytest.fixture
def worker(monkeypatch):
    """Run each job in this process when it is sent."""
    monkeypatch.setattr(runner, "send_job", lambda job_id: runner.run_claimed(str(job_id)))


@pytest.mark.django_db(transaction=True)
def test_the_model_gets_the_result_of_the_job(worker):
    user = member(Role.EDITOR)
    built = build_agent({"model": DEMO, "workflows": ["word-frequency"]})

    run_id = uuid4()
    result = asyncio.run(answer(built, 'Use word-frequency {"text": "a b a"}', user_id=user.pk, run_id=run_id))

    assert result.output.endswith('workflow-word-frequency says {"a":2,"b":1}.')
    job = Job.objects.get(kind=RUN_WORKFLOW)
    assert (job.state, job.result, job.requested_by) == ("done", COUNTED, user)
    arguments = {"text": "a b a", "most": 10}
    assert job.parameters == {"key": "word-frequency", "arguments": arguments, "run": str(run_id)}


@pytest.mark.django_db(transaction=True)
def test_a_workflow_may_be_asynchronous():
    @workflow("wait-for-ship")
    async def wait_for_ship(name: str) -> str:
        await asyncio.sleep(0)
        return f"{name} has arrived."

    built = build_agent({"model": DEMO, "workflows": ["wait-for-ship"]})
    result = asyncio.run(answer(built, 'Use wait-for-ship {"name": "Vega"}'))

    assert result.output.endswith("workflow-wait-for-ship says Vega has arrived.")


@pytest.mark.django_db(transaction=True)
def test_arguments_that_no_database_stores_do_not_fail_the_workflow(worker):
    built = build_agent({"model": DEMO, "workflows": ["word-frequency"]})

    result = asyncio.run(answer(built, 'Use word-frequency {"text": "a\\u0000 b a\\u0000"}'))

    assert result.output.endswith('workflow-word-frequency says {"a":2,"b":1}.')
    assert Job.objects.get(kind=RUN_WORKFLOW).parameters["arguments"]["text"] == "a\ufffd b a\ufffd"


@pytest.mark.django_db(transaction=True)
def test_an_unregistered_workflow_fails_its_job(worker):
    job = start_workflow({"key": "gone", "arguments": {}}, None)

    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "WorkflowError: No workflow is registered as 'gone'.")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("WorkflowError: No words: none.", "The workflow failed: No words: none."),
        ("KeyError: 'text'", "The workflow failed: The tool failed because of an error in its code."),
        ("The job did not finish in 5 attempts.", "The workflow failed: The job did not finish in 5 attempts."),
    ],
)
def test_the_model_gets_the_error_of_a_failed_job(monkeypatch, error, words):
    def fail(job_id):
        Job.objects.filter(pk=job_id).update(state="failed", error=error)

    monkeypatch.setattr(runner, "send_job", fail)
    built = build_agent({"model": DEMO, "workflows": ["word-frequency"]})

    result = asyncio.run(answer(built, 'Use word-frequency {"text": ""}'))

    assert words in result.output
    assert "Error:" not in result.output


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("does", "words"),
    [
        (ValueError("There are no words."), "The workflow failed: There are no words."),
        (AttributeError("'NoneType' object has no attribute 'split'"), "because of an error in its code."),
        (object(), "The tool returned a value that cannot be shown as text."),
    ],
)
def test_the_model_gets_the_outcome_of_a_job_in_words(worker, does, words):
    @workflow("odd-job")
    @shared_task(name=f"odd-job-{id(does)}")
    def odd_job() -> Any:
        if isinstance(does, Exception):
            raise does
        return does

    result = asyncio.run(answer(build_agent({"model": DEMO, "workflows": ["odd-job"]}), "Use odd-job"))

    assert words in result.output


@pytest.mark.django_db(transaction=True)
def test_an_outage_of_the_database_does_not_end_the_wait_for_a_job(monkeypatch):
    refresh, outages = Job.refresh_from_db, [OperationalError("gone"), InterfaceError("closed")]

    def refresh_after_outages(job):
        if outages:
            raise outages.pop()
        runner.run_claimed(str(job.pk))
        refresh(job)

    monkeypatch.setattr(runner, "send_job", lambda job_id: None)
    monkeypatch.setattr(Job, "refresh_from_db", refresh_after_outages)
    entry = registry.get(Kind.WORKFLOW, "word-frequency")

    assert asyncio.run(run_workflow(entry, {"text": "a b a"}, None)) == COUNTED
    assert Job.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_deleted_ends_the_wait_with_a_reason(monkeypatch):
    monkeypatch.setattr(runner, "send_job", lambda job_id: Job.objects.filter(pk=job_id).delete())
    entry = registry.get(Kind.WORKFLOW, "word-frequency")

    with pytest.raises(RunError, match="its job was deleted"):
        asyncio.run(run_workflow(entry, {"text": "a"}, None))


@pytest.mark.django_db(transaction=True)
def test_no_other_worker_takes_a_workflow_that_lasts_longer_than_a_lease(worker, monkeypatch, settings):
    settings.JOB_LEASE = 0.04
    renewed, renew = threading.Event(), Job.renew_lease

    def renew_lease(job):
        renew(job)
        renewed.set()

    @workflow("long-job")
    @shared_task(name="long-job")
    def long_job() -> bool:
        return renewed.wait(20)

    monkeypatch.setattr(Job, "renew_lease", renew_lease)

    assert asyncio.run(run_workflow(registry.get(Kind.WORKFLOW, "long-job"), {}, None)) is True
    assert Job.objects.get().state == "done"


@pytest.mark.django_db(transaction=True)
def test_cancelling_the_wait_does_not_cancel_the_job(monkeypatch):
    looked = threading.Event()
    monkeypatch.setattr(runner, "send_job", lambda job_id: None)
    monkeypatch.setattr(Job, "refresh_from_db", lambda job: looked.set())
    entry = registry.get(Kind.WORKFLOW, "word-frequency")

    async def impatient():
        waiting = asyncio.create_task(run_workflow(entry, {"text": "a"}, None))
        assert await asyncio.to_thread(looked.wait, 30)
        waiting.cancel()
        await waiting

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(impatient())

    assert Job.objects.get().state == "queued"


def test_a_worker_process_runs_the_job(served):
    agent = {
        "id": "letter-counter",
        "name": "Counter",
        "instructions": "",
        "model": DEMO,
        "workflows": ["word-frequency"],
    }

    with served.client(served.keys["publisher"]) as client:
        client.post("/api/stored/agents", json=agent).raise_for_status()
        response = client.post(
            "/api/agents/letter-counter/generate",
            json={"messages": 'Use word-frequency {"text": "a b a"}'},
            timeout=60,
        )

    assert response.status_code == 200, response.text
    assert response.json()["text"].endswith('workflow-word-frequency says {"a":2,"b":1}.')
    assert wait_for_jobs(served, RUN_WORKFLOW)[-1][0] == "done"
