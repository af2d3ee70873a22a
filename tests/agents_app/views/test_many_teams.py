"""Forms outside of the admin where there are more teams than a select can offer."""

import pytest
from django.urls import reverse

from access_app import teams
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, UserFactory
from tests.page_client import browser

pytestmark = pytest.mark.django_db

DUPLICATE = "/agents/concierge/versions/1/duplicate"
FORMS = ["/new-agent", DUPLICATE, "/datasets", "/new-scorer", "/knowledge/+new"]


@pytest.fixture
def root(monkeypatch):
    for owner in ("support", "legal", "sales"):
        MembershipFactory(owner_id=owner)
    AgentFactory(id="concierge", owner_id="support")
    monkeypatch.setattr(teams, "MAX_OFFERED_TEAMS", 3)
    return browser(UserFactory(is_superuser=True))


@pytest.mark.parametrize("path", FORMS)
def test_the_form_asks_for_the_id_of_a_team(root, path):
    html = root.get(path).content.decode()

    assert '<input type="text" name="owner_id"' in html
    assert "legal" not in html


@pytest.mark.parametrize("path", FORMS)
def test_a_few_teams_are_offered_in_a_select(root, monkeypatch, path):
    monkeypatch.setattr(teams, "MAX_OFFERED_TEAMS", 4)

    assert '<option value="legal">legal</option>' in root.get(path).content.decode()


def test_a_duplicate_belongs_to_the_entered_team(root):
    sent = {"id": "copy", "name": "Copy"}

    refused = root.post(DUPLICATE, sent | {"owner_id": "leagl"})
    root.post(DUPLICATE, sent | {"owner_id": "legal"})

    assert "You cannot create agents for this team." in refused.content.decode()
    assert Agent.objects.get(pk="copy").owner_id == "legal"


def test_the_dialog_that_changes_the_team_suggests_none(root):
    assert "legal" not in root.get("/agents/concierge/hand-over").content.decode()


def test_the_page_of_a_team_offers_the_own_teams(root, monkeypatch):
    user = MembershipFactory(owner_id="sales", role="manager", user=UserFactory(is_superuser=True)).user

    html = browser(user).get(f"{reverse('account:team')}?owner=support").content.decode()

    assert '<option value="sales">sales</option>' in html
    assert '<option value="support" selected>support</option>' in html
    assert "legal" not in html
