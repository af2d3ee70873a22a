"""Empty lists of people who see no agent: the next step is theirs, not a link to another empty list."""

import pytest
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, UserFactory, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db
LISTS = [reverse(name) for name in ("runs:list", "threads:list", "runs:background_tasks")]
ASK = "You are not in a team with agents yet. Ask a manager of a team to add you."


@pytest.mark.parametrize("address", LISTS)
def test_who_sees_no_agent_is_told_whom_to_ask(address):
    text = browser(UserFactory()).get(address).text

    assert ASK in text
    assert "Choose an agent" not in text


@pytest.mark.parametrize("address", LISTS)
def test_who_sees_or_may_create_an_agent_can_choose_one(address):
    editor, viewer = member(Role.EDITOR, "support"), member(Role.VIEWER, "newsroom")
    AgentFactory(owner_id="newsroom")

    for user in (editor, viewer):
        text = browser(user).get(address).text
        assert "Choose an agent" in text
        assert ASK not in text
