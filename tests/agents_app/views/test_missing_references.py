"""Warnings on pages about references to entries that nothing registers."""

import re
from html import unescape

import pytest
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, UserFactory, member
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db

UNKNOWN_MODEL = {"provider": "gone-provider", "name": "any"}
NEEDS_MODEL = "This agent cannot answer: no model provider is registered as"
WITHOUT_IT = "The agent runs without it."


@pytest.fixture(params=[Role.EDITOR, Role.VIEWER])
def page(request, client):
    """Return a function that returns the page of an agent, for an editor and for a viewer."""
    client.force_login(member(request.param))
    return lambda agent: client.get(reverse("agents:edit", args=[agent.pk])).content.decode()


def test_an_unknown_model_provider_prevents_answers(page):
    text = unescape(page(AgentFactory(model=UNKNOWN_MODEL)))

    assert f"{NEEDS_MODEL} 'gone-provider'. Choose another model." in text
    assert WITHOUT_IT not in text
    assert "without them" not in text


def test_another_unknown_entry_does_not_prevent_answers(page):
    text = page(AgentFactory(tools=["gone-tool"]))

    assert WITHOUT_IT in text
    assert NEEDS_MODEL not in text


def test_each_of_several_references_has_its_effect(page):
    text = page(AgentFactory(model=UNKNOWN_MODEL, tools=["gone-tool"]))

    banners = re.findall(r'<div class="banner.*?</div>', text, re.DOTALL)
    assert [NEEDS_MODEL in banner for banner in banners if "cannot" in banner or "without" in banner] == [True, False]
    assert "without them" not in text


def test_what_prevents_answers_comes_before_many_other_references(page):
    rule = {"rules": {"operator": "AND", "conditions": [{"field": "plan", "operator": "equals", "value": "free"}]}}
    variants = {"model": [{"value": {"provider": "gone-variant", "name": "any"}, **rule}]}
    others = {"agents": [f"gone-{number}" for number in range(30)], "tools": ["gone-tool"]}

    text = unescape(page(AgentFactory(model=UNKNOWN_MODEL, conditional=variants, **others)))

    assert f"{NEEDS_MODEL} 'gone-provider'." in text
    assert "The callers of a variant get no answer." in text
    assert "30 more entries are not registered or cannot be used. The agent runs without them." in text


def test_one_more_reference_is_counted_in_the_singular(page):
    text = page(AgentFactory(tools=[f"gone-{number}" for number in range(4)]))

    assert "1 more entry is not registered or cannot be used. The agent runs without it." in text


def test_an_unknown_model_provider_is_an_error_before_publishing(publisher):
    agent = AgentFactory(model=UNKNOWN_MODEL)
    url = reverse("agents:edit", args=[agent.pk])

    refused = publisher.post(url, editor_form(agent, publish="yes", name="Doorman"))
    saved = publisher.post(url, editor_form(agent, publish="no", name="Doorman"))

    assert refused.status_code == 422
    (message,) = refused.context["form"].errors["provider"]
    assert message == f"{NEEDS_MODEL} 'gone-provider'. Choose another model."
    assert saved.status_code == 302
    agent.refresh_from_db()
    assert agent.name == "Doorman"
    assert agent.has_draft


def test_the_admin_says_so_too(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    agent = AgentFactory(model=UNKNOWN_MODEL)
    form = client.get(reverse("admin:agents_app_agent_change", args=[agent.pk])).context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    body = {name: value for name, value in values.items() if value not in (None, False)}

    response = client.post(
        reverse("admin:agents_app_agent_change", args=[agent.pk]), {**body, "description": "New"}, follow=True
    )

    assert NEEDS_MODEL in unescape(response.content.decode())
