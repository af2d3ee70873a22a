"""The plans of queries for the threads of a resource, which requests name by realm and ID."""

import pytest
from django.db import connection

from memory_app.models import Thread
from memory_app.realms import memory_caller
from runs_app.models import AgentRun
from runs_app.runs_of_resources import run_queries
from tests.factories import member

pytestmark = pytest.mark.django_db

INDEX = "thread_of_resource_key"


@pytest.fixture
def caller():
    """Return a caller whose realm has 3,000 threads of 300 resources, with a run each."""
    caller = memory_caller(member("editor"))
    threads = Thread.objects.bulk_create(
        Thread(key=f"t{number}", realm=caller.realm, resource_key=f"r{number % 300}", agent_key="concierge")
        for number in range(3000)
    )
    AgentRun.objects.bulk_create(AgentRun(agent_key="concierge", thread=thread, input={}) for thread in threads)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return caller


def test_the_newest_threads_of_a_resource_are_found_by_an_index(caller):
    threads = Thread.objects.for_caller(caller).filter(realm=caller.realm, resource_key="r7")

    assert INDEX in threads.order_by("-updated_at", "-pk")[:100].explain()


def test_the_runs_of_the_threads_of_a_resource_are_found_by_an_index(caller):
    _, of_threads, *_ = run_queries(caller.realm, "r7")

    assert INDEX in of_threads.order_by().explain()
