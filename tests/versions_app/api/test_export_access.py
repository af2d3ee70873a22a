"""The file of an export is only for users who may still read its agents."""

import pytest
from django.urls import reverse

from access_app.models import Membership
from access_app.role import Role
from tests.agent_exchange import EXPORT, run_job
from tests.api_client import Caller
from tests.factories import AgentFactory, MembershipFactory, UserFactory, api_key, member
from tests.page_client import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def person():
    """Return a member of two teams that have an agent each."""
    person = member(Role.EDITOR, "support")
    MembershipFactory(user=person, owner_id="newsroom")
    AgentFactory(owner_id="support")
    AgentFactory(owner_id="newsroom", instructions="Secret")
    return person


def export(person):
    """Export all agents that a user sees. Return the caller and the finished job."""
    caller = Caller(api_key(person))
    return caller, run_job(caller, caller.post(EXPORT))


def test_who_left_a_team_cannot_download_its_agents(person):
    caller, job = export(person)
    assert job["result"]["ownerIds"] == ["newsroom", "support"]
    assert caller.client.get(job["result"]["file"]).status_code == 200
    Membership.objects.filter(owner_id="newsroom").delete()

    file = caller.get(job["result"]["file"])
    page = browser(person).get(reverse("exchange:download", args=[job["id"]]))

    assert file.status_code == 403
    assert file.body["error"] == "This needs the Viewer role in newsroom. Start a new export."
    assert page.status_code == 403
    _, again = export(person)
    assert again["result"]["ownerIds"] == ["support"]
    assert caller.client.get(again["result"]["file"]).status_code == 200


def test_a_superuser_downloads_agents_of_all_owners(person):
    caller, job = export(UserFactory(is_superuser=True))

    assert caller.client.get(job["result"]["file"]).status_code == 200
