"""Filters in the addresses of the lists of the admin."""

import re

import pytest
from django.contrib import admin
from django.urls import reverse

from access_app.admin_base.lists import filter_name
from agents_app.models import Agent
from memory_app.models import Resource
from tests.factories import AgentFactory, UserFactory, api_key

pytestmark = pytest.mark.django_db

ADMINS = {model._meta.label: page for model, page in admin.site._registry.items()}


@pytest.fixture
def browser(client):
    """Return the browser of a superuser, to whom no list is closed."""
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def list_address(model):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@pytest.mark.parametrize("label", ADMINS)
def test_a_list_can_only_be_filtered_by_what_it_offers(rf, label):
    page, request = ADMINS[label], rf.get("/")
    request.user = UserFactory.build(is_staff=True, is_superuser=True)
    offered = {filter_name(item) for item in page.get_list_filter(request)}
    columns = {field.name for field in page.model._meta.fields} - offered

    def allowed(names):
        return {name for name in names if page.lookup_allowed(name, "1", request)}

    assert (allowed(offered), allowed({f"{column}__startswith" for column in columns} | columns)) == (offered, set())


def test_a_secret_or_a_conversation_cannot_be_guessed_by_filters(browser):
    api_key(UserFactory())
    Resource.objects.create(realm="user:1", key="bo", working_memory="Bo is ill.")

    guesses = [
        browser.get(reverse("admin:access_app_apikey_changelist"), {"secret_hash__startswith": "a"}),
        browser.get(reverse("admin:memory_app_resource_changelist"), {"working_memory__contains": "ill"}),
    ]

    assert [answer.status_code for answer in guesses] == [400, 400]


def test_the_page_of_an_agent_links_to_its_filtered_versions(browser):
    agents = [AgentFactory(), AgentFactory()]
    page = browser.get(reverse("admin:agents_app_agent_change", args=[agents[0].pk])).content.decode()

    links = re.findall(r'href="([^"]+\?agent__id__exact=[^"]+)"', page)
    lists = [browser.get(link).context["cl"].queryset for link in links]

    assert [[row.agent_id for row in rows] for rows in lists] == [[agents[0].pk]] * 2
    assert Agent.objects.count() == 2
