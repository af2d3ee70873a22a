"""The demo data."""

import json
import stat
from io import StringIO

import pytest
from django.conf import settings
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command

from access_app.models import Membership
from agents_app.configuration.references import find_missing_references
from agents_app.models import Agent
from versions_app.models import AgentVersion


@pytest.fixture
def seeded(db):
    call_command("seed_demo", stderr=StringIO())


def passwords():
    return json.loads((settings.DATA_DIR / "demo_passwords.json").read_text())["users"]


def test_sixteen_agents_have_histories_of_several_authors(seeded):
    assert Agent.objects.count() == 16
    assert set(AgentVersion.objects.values_list("author_name", flat=True)) == {"ada", "maya", "tom"}
    assert AgentVersion.objects.filter(pinned=True).exclude(name="").count() >= 3
    assert AgentVersion.objects.filter(source="restore").exists()


def test_the_demo_has_a_draft_and_a_broken_reference(seeded):
    agents = Agent.objects.with_versions()

    assert any(agent.has_draft for agent in agents)
    missing = {warning.key for agent in agents for warning in find_missing_references(agent.active_version.references)}
    assert "run-sql" in missing


def test_the_histories_are_in_the_past_and_in_order(seeded):
    for agent in Agent.objects.all():
        times = list(agent.versions.order_by("version_number").values_list("created_at", flat=True))
        assert times == sorted(times)
        assert agent.created_at == times[0]


def test_three_users_can_sign_in_and_the_password_file_is_private(seeded):
    users = [authenticate(username=user["username"], password=user["password"]) for user in passwords()]

    assert len([user for user in users if user]) == 3
    assert len(set(Membership.objects.values_list("role", flat=True))) >= 3
    assert stat.S_IMODE((settings.DATA_DIR / "demo_passwords.json").stat().st_mode) == 0o600


def test_each_data_folder_has_its_own_passwords(seeded, settings, tmp_path):
    before = {user["password"] for user in passwords()}
    Agent.objects.all().delete()
    get_user_model().objects.all().delete()
    settings.DATA_DIR = tmp_path

    call_command("seed_demo", stderr=StringIO())

    assert not before & {user["password"] for user in passwords()}


def test_seeding_again_changes_nothing(seeded):
    before = passwords()

    call_command("seed_demo", stderr=StringIO())

    assert passwords() == before
    assert Agent.objects.count() == 16
