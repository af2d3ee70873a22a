"""Changes of the gates of an agent that moves to another team at the same moment."""

import time
from threading import Event

import pytest
from django.db import transaction
from django.test import Client

from agents_app.models import Agent
from evals_app.models import ReleaseGate
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]  # SQLite locks no rows

PAUSE = 0.3  # seconds for which the move is not yet visible to others
BODY = {"datasetId": "support", "scorer": "exact", "min": 0.5}
FIELDS = {"dataset": "support", "scorer": "exact", "statistic": "mean", "minimum": "0.5", "mode": "enforce"}


@pytest.fixture
def manager():
    return member("manager", "support")


@pytest.fixture
def gate():
    make_dataset("One", owner_id="support")
    agent = AgentFactory(id="concierge", owner_id="support")
    return ReleaseGate.objects.create(
        agent=agent, owner_id="support", dataset_id="support", scorer="exact", minimum=0.8
    )


def during_move(request):
    """Return the status of a request that begins while the agent moves."""
    is_moving = Event()

    def move():
        with transaction.atomic():
            Agent.objects.update(owner_id="sales")
            is_moving.set()
            time.sleep(PAUSE)

    return run_concurrently([move, lambda: is_moving.wait(10) and request()])[1].status_code


@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("PATCH", "/{gate}"), ("DELETE", "/{gate}")])
def test_a_request_is_refused(method, path, gate, manager):
    caller = Caller(api_key(manager))
    gates = "/api/stored/agents/concierge/gates"
    path = gates + path.format(gate=gate.pk)
    caller.get(gates)  # the first request of a process loads the URLs, for which the move does not wait

    assert during_move(lambda: caller.call(method, path, None if method == "DELETE" else BODY)) == 404
    assert ReleaseGate.objects.get().minimum == 0.8


@pytest.mark.parametrize("path", ["add", "{gate}", "{gate}/delete"])
def test_a_form_is_refused(path, gate, manager):
    client = Client()
    client.force_login(manager)
    path = "/agents/concierge/gates/" + path.format(gate=gate.pk)

    assert during_move(lambda: client.post(path, FIELDS)) == 404
    assert ReleaseGate.objects.get().minimum == 0.8
