"""The places of background tasks in all and of one agent."""

from collections import Counter

import pytest

from runs_app.background.slots import fill_places
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

    started = fill_places()

    places = Counter(BackgroundTask.objects.in_places().values_list("agent_key", flat=True))
    assert (started, sorted(places.values())) == (10, [5, 5])
    assert fill_places() == 0
