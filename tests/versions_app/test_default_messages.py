"""Versions that were saved without a message: pages show their changes, the API has the default of its protocol."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.agents_app.admin.test_admin_saving import admin_form
from tests.api_client import Caller, agent_path
from tests.factories import AgentFactory, UserFactory, api_key
from tests.page_client import browser, editor_form

pytestmark = pytest.mark.django_db

DEFAULT = "Auto-saved after edit"


@pytest.fixture
def saved(request):
    """Return an agent whose second version was saved in the editor, in the admin or through the API, and a user."""
    user = UserFactory(is_staff=True, is_superuser=True)
    agent = AgentFactory()
    fields = {"instructions": "Greet guests warmly.\nAnswer briefly."}
    if request.param == "editor":
        sent = editor_form(agent, publish="yes", **fields)
        browser(user).post(reverse("agents:edit", args=[agent.pk]), sent)
    elif request.param == "admin":
        browser(user).post(reverse("admin:agents_app_agent_change", args=[agent.pk]), admin_form(agent, **fields))
    else:
        Caller(api_key(user)).patch(agent_path(agent.pk), fields)
    assert agent.versions.count() == 2
    return agent, user


@pytest.mark.parametrize("saved", ["editor", "admin", "api"], indirect=True)
def test_pages_and_admin_show_the_change_instead_of_a_default_message(saved):
    agent, user = saved
    client = browser(user)
    pages = {
        "history": reverse("versions:list", args=[agent.pk]),
        "version": reverse("versions:view", args=[agent.pk, 2]),
        "live history": reverse("versions:live_history", args=[agent.pk]),
        "editor": reverse("agents:edit", args=[agent.pk]),
        "recent": reverse("versions:recent", args=[agent.pk]),
        "admin": reverse("admin:versions_app_agentversion_changelist"),
        "admin of the version": reverse("admin:versions_app_agentversion_change", args=[agent.versions.first().pk]),
    }

    texts = {name: client.get(url).content.decode() for name, url in pages.items()}

    assert {name for name, text in texts.items() if DEFAULT in text} == set()
    assert "Instructions +1 −1" in texts["admin"]
    assert agent.versions.first().change_message == ""


@pytest.mark.parametrize("saved", ["editor", "api"], indirect=True)
def test_the_api_answers_with_the_default_message(saved):
    agent, user = saved
    versions = Caller(api_key(user)).get(agent_path(agent.pk, "versions")).body["versions"]

    assert [version["changeMessage"] for version in versions] == [DEFAULT, "Created"]


def test_the_admin_summarizes_a_page_with_a_fixed_number_of_queries(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))

    def count_queries(versions):
        for number in range(versions):
            AgentFactory(description="x").edit({"description": f"{number}"})
        with CaptureQueriesContext(connection) as queries:
            client.get(reverse("admin:versions_app_agentversion_changelist"))
        return len(queries)

    assert count_queries(1) == count_queries(5)
