"""The page of an agent in the admin for those who may not change it."""

import pytest
from django.urls import reverse

from agents_app.editing.archiving import archive_locked
from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs_app.views.conftest import page_text

pytestmark = pytest.mark.django_db


def read(user, agent):
    answer = browser(user).get(reverse("admin:agents_app_agent_change", args=[agent.pk]))
    assert answer.status_code == 200
    return page_text(answer)


@pytest.fixture
def agent():
    model = {"provider": "demo", "name": "echo", "temperature": 0.5}
    return AgentFactory(id="porter", model=model, memory="last-messages")


@pytest.mark.parametrize("is_archived", [False, True])
def test_the_page_shows_what_is_stored(agent, is_archived):
    if is_archived:
        archive_locked(agent)

    text = read(member("manager" if is_archived else "viewer", is_staff=True), agent)

    assert "Model Provider demo Name echo Temperature 0.5 Memory last-messages" in text
    assert "Team: Shared" in text


def test_the_page_has_no_rows_of_inputs_that_nobody_fills_in(agent):
    text = read(member("viewer", is_staff=True), agent)

    for absent in ("Provider: None", "Temperature: None", "This change", "Publish: None", "Owner:"):
        assert absent not in text
