"""The dialog that moves an agent to another team."""

import pytest
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, UserFactory, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("team", "message"),
    [
        ("newsroom", "Current owner: newsroom."),
        ("", "Current owner: Shared."),
        ("newsrom", "Current owner: newsrom. This team has no members, so only superusers see the agent."),
    ],
)
def test_a_team_without_members_is_named_after_the_change(team, message):
    member(Role.EDITOR, "newsroom")
    agent = AgentFactory(owner_id="support")
    root = browser(UserFactory(is_superuser=True))

    page = root.post(reverse("agents:change_owner", args=[agent.pk]), {"owner_id": team}, follow=True).text

    assert message in page
    assert ("no members" in message) == ("no members" in page)
