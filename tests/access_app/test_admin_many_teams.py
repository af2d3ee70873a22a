"""Forms of the admin where there are more teams than a select can offer."""

import pytest
from django.urls import reverse

from access_app import teams
from access_app.admin_base.team_fields import UNKNOWN_TEAM_MESSAGE
from access_app.models import ApiKey
from agents_app.models import Agent
from tests.factories import AgentFactory, MembershipFactory, UserFactory
from versions_app.models import RetentionRule

pytestmark = pytest.mark.django_db

FORMS = {
    "access_app_membership_add": "owner_id",
    "access_app_apikey_add": "realm_owner",
    "versions_app_retentionrule_add": "owner_id",
    "tools_app_mcpserver_add": "owner_id",
    "tools_app_acpworkspace_add": "owner_id",
    "agents_app_agent_add": "owner_id",
}


@pytest.fixture
def browser(client, monkeypatch):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    for owner in ("support", "legal", "sales"):
        MembershipFactory(owner_id=owner)
    monkeypatch.setattr(teams, "MAX_OFFERED_TEAMS", 3)
    return client


@pytest.mark.parametrize(("name", "field"), FORMS.items(), ids=FORMS)
def test_the_form_asks_for_the_id_of_a_team(browser, name, field):
    html = browser.get(reverse(f"admin:{name}")).content.decode()

    assert f'<input type="text" name="{field}"' in html
    assert "legal" not in html


def test_the_page_of_a_user_asks_for_the_ids_of_teams(browser):
    user = MembershipFactory(owner_id="support").user

    html = browser.get(reverse("admin:auth_user_change", args=[user.pk])).content.decode()

    assert '<input type="text" name="memberships-0-owner_id" value="support"' in html
    assert "legal" not in html


def test_a_few_teams_are_offered_in_a_select(browser, monkeypatch):
    monkeypatch.setattr(teams, "MAX_OFFERED_TEAMS", 4)

    html = browser.get(reverse("admin:access_app_membership_add")).content.decode()

    assert '<option value="legal">legal</option>' in html


def test_an_id_of_no_team_is_refused(browser):
    path, sent = reverse("admin:versions_app_retentionrule_add"), {"versions": "50"}

    refused = browser.post(path, sent | {"owner_id": "leagl"}).content.decode()
    browser.post(path, sent | {"owner_id": "legal"})
    browser.post(path, sent | {"owner_id": ""})

    assert UNKNOWN_TEAM_MESSAGE in refused
    assert {*RetentionRule.objects.values_list("owner_id", flat=True)} == {"legal", ""}


def test_a_key_serves_the_end_users_of_the_entered_team(browser):
    user = MembershipFactory(owner_id="support", role="editor").user
    fields = {"user": user.pk, "name": "Shop", "role": ""}
    path = reverse("admin:access_app_apikey_add")

    assert "Enter team: and the ID of the team" in browser.get(path).content.decode()
    refused = browser.post(path, fields | {"realm_owner": "team:suport"}).content.decode()
    browser.post(path, fields | {"realm_owner": "team:support"})

    assert "team:suport is not one of the available choices" in refused
    assert ApiKey.objects.get().realm_owner == "support"


def test_an_agent_moves_to_the_entered_team(browser):
    agent = AgentFactory(owner_id="support")
    page = browser.get(path := reverse("admin:agents_app_agent_change", args=[agent.pk]))
    form = page.context["adminform"].form
    fields = {name: value for name in form.fields if (value := form[name].value()) not in (None, False)}

    browser.post(path, fields | {"owner_id": "leagl"})
    assert Agent.objects.get().owner_id == "support"
    browser.post(path, fields | {"owner_id": "legal"})

    assert Agent.objects.get().owner_id == "legal"
