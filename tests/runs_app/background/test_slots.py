"""The slots of background tasks in all and of one agent."""

from collections import Counter
from copy import copy
from uuid import uuid4

import pytest

from runs_app.background.slots import fill_slots
from runs_app.models import BackgroundTask
from tests.factories import AgentFactory, UserFactory
from tests.runs_app.background.test_api import task_of
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


def test_at_most_ten_tasks_run_at_once_in_all_and_five_of_one_agent():
    user = UserFactory()
    for agent in (AgentFactory(), AgentFactory(), AgentFactory()):
        run = RunFactory(agent=agent, agent_key=agent.pk, requested_by=user)
        for number in range(7):
            task_of(run, call_key=f"c{number}", number=number, status="pending")

    started = fill_slots()

    places = Counter(BackgroundTask.objects.in_slots().values_list("agent_key", flat=True))
    assert (started, sorted(places.values())) == (10, [5, 5])
    assert fill_slots() == 0


def test_countless_tasks_of_one_agent_leave_places_to_others():
    user, agents = UserFactory(), [AgentFactory(), AgentFactory()]
    runs = [RunFactory(agent=agent, agent_key=agent.pk, requested_by=user) for agent in agents]
    first = task_of(runs[0], call_key="c", status="pending")
    copies = []
    for number in range(600):
        first.pk, first.call_key, first.number = uuid4(), f"c{number}", number
        copies.append(copy(first))
    BackgroundTask.objects.bulk_create(copies)
    task_of(runs[1], call_key="late", status="pending")

    assert fill_slots() == 6

    places = Counter(BackgroundTask.objects.in_slots().values_list("agent_key", flat=True))
    assert places == {agents[0].pk: 5, agents[1].pk: 1}
