"""The check of a history at the same time as a save."""

import time
from threading import Event

import pytest
from django.db import transaction

from agents_app.models import Agent
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory
from versions_app.integrity.check import agents_to_check, check_agent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("repair", [False, True])
def test_a_version_that_is_published_while_the_check_waits_is_no_fault(repair):
    AgentFactory(id="porter")
    suspect = agents_to_check().get(pk="porter")
    suspect.last_version_number = 0  # as if it had been read between two statements of a save
    locked = Event()

    def publish():
        with transaction.atomic():
            Agent(pk="porter").edit({"name": "Porter"})
            locked.set()
            time.sleep(0.5)  # the check asks for the lock

    def check():
        locked.wait()
        return check_agent(suspect, repair)

    answers = run_concurrently([publish, check])

    agent = Agent.objects.get()
    assert answers == [None, []]
    assert (agent.active_version.version_number, agent.head_version.version_number) == (2, 2)
    assert agent.activations.count() == 2
