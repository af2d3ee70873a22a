"""Editing agents in Celery tasks."""

import pytest
from celery import shared_task
from celery.contrib.testing.worker import start_worker
from django.contrib.auth import get_user_model

from agentcms.celery import app
from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.broker import broker
from tests.factories import AgentFactory, UserFactory
from tests.served import wait_until


@shared_task(name="tests.rename")
def rename(agent_id, user_id=None, **options):
    with change(actor=get_user_model().objects.filter(pk=user_id).first(), **options):
        Agent.objects.get(pk=agent_id).edit({"name": "Porter"})


@shared_task(name="tests.end_process")
def end_process():
    raise SystemExit(3)


@pytest.fixture
def worker(valkey):
    """Start a worker with two threads in this process."""
    address = valkey.replace("unix://", "redis+socket://")
    options = {"pool": "threads", "concurrency": 2, "perform_ping_check": False, "shutdown_timeout": 20}
    with broker(address), start_worker(app, **options):
        yield


@pytest.mark.django_db(transaction=True)
def test_an_edit_in_a_task_creates_one_version_with_its_source(worker):
    agent = AgentFactory()

    rename.delay(agent.pk)

    wait_until(lambda: agent.versions.count() == 2)
    version = agent.versions.first()
    assert (version.source, version.author, version.changed_fields) == ("task", None, ["name"])
    assert version.change_message == ""


@pytest.mark.django_db(transaction=True)
def test_a_task_records_author_and_message(worker):
    agent, ann = AgentFactory(), UserFactory(username="ann")

    rename.delay(agent.pk, ann.pk, message="A better name")

    wait_until(lambda: agent.versions.count() == 2)
    version = agent.versions.first()
    assert (version.author, version.author_name, version.source) == (ann, "ann", "task")
    assert (version.change_message, version.changed_fields, version.based_on) == ("A better name", ["name"], 1)


@pytest.mark.django_db(transaction=True)
def test_tasks_that_try_to_end_their_process_take_no_thread_of_the_worker(worker):
    agent = AgentFactory()

    for _ in range(3):  # more than the worker takes at once
        end_process.delay()
    rename.delay(agent.pk)

    wait_until(lambda: agent.versions.count() == 2)


def test_a_task_that_is_called_directly_ends_its_process():
    with pytest.raises(SystemExit):
        end_process()
