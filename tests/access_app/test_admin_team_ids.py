"""IDs of teams with spaces in forms of the admin."""

from typing import Any

import pytest
from django.urls import reverse

from tests.access_app.test_admin_stale_forms import opened_inputs, page_address
from tests.factories import MembershipFactory, UserFactory
from tools_app.models import AcpWorkspace, McpServer
from versions_app.models import RetentionRule

pytestmark = pytest.mark.django_db

TEAM = " night shift "

ROWS: dict[str, Any] = {
    "membership": lambda: MembershipFactory(owner_id=TEAM),
    "retention": lambda: RetentionRule.objects.create(owner_id=TEAM, versions=50),
    "server": lambda: McpServer.objects.create(
        owner_id=TEAM, key="office", title="Office", url="https://mcp.example.org/mcp"
    ),
}


@pytest.fixture
def browser(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_saved_unchanged_stays_in_its_team(browser, name):
    row = ROWS[name]()

    answer = browser.post(page_address(row), opened_inputs(browser, row))

    assert answer.status_code == 302
    row.refresh_from_db()
    assert row.owner_id == TEAM


def test_a_member_is_added_to_the_team_of_the_choice(browser):
    MembershipFactory(owner_id=TEAM)
    user = UserFactory()

    browser.post(
        reverse("admin:access_app_membership_add"), {"user": user.username, "owner_id": TEAM, "role": "viewer"}
    )

    assert user.memberships.get().owner_id == TEAM


def test_a_workspace_is_that_of_the_chosen_team(browser):
    MembershipFactory(owner_id=TEAM)

    browser.post(reverse("admin:tools_app_acpworkspace_add"), {"owner_id": TEAM, "name": "docs"})

    assert AcpWorkspace.objects.get().owner_id == TEAM
