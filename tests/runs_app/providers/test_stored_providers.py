"""Stored providers in warnings and in the editor."""

import pytest
from django.urls import reverse

from access_app.role import Role
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    return AgentFactory(model={"provider": "house", "name": "llama"})


@pytest.fixture
def custom_provider():
    return ModelProvider.objects.create(
        key="house", title="House", base_url="https://models.example.org", names=["llama"], aliases=["local"]
    )


@pytest.fixture
def api_warnings(client):
    """Return the warnings of the API."""
    secret = api_key(member(Role.EDITOR))

    def ask(agent):
        answer = client.get(f"/api/stored/agents/{agent.pk}", headers={"Authorization": f"Bearer {secret}"})
        return [warning["message"] for warning in answer.json()["warnings"]]

    return ask


def test_an_unknown_provider_is_a_warning(agent, api_warnings):
    assert api_warnings(agent) == ["No model provider is registered as 'house'."]


def test_a_stored_provider_is_no_warning(agent, custom_provider, api_warnings):
    assert api_warnings(agent) == []
    assert api_warnings(AgentFactory(model={"provider": "local", "name": "llama"})) == []


def test_a_deleted_provider_is_a_warning_again(agent, custom_provider, api_warnings):
    assert api_warnings(agent) == []

    custom_provider.delete()

    assert api_warnings(agent) == ["No model provider is registered as 'house'."]


def test_the_editor_offers_a_stored_provider_with_its_models(agent, custom_provider, client):
    client.force_login(member(Role.EDITOR))

    page = client.get(reverse("agents:edit", args=[agent.pk])).content.decode()

    assert "House" in page
    assert "llama" in page
    assert "No model provider is registered" not in page


def test_a_stored_provider_replaces_the_built_in_one_in_the_editor(agent, client):
    ModelProvider.objects.create(key="openai", title="OpenAI of ours", dialect="openai", names=["our-model"])
    client.force_login(member(Role.EDITOR))

    page = client.get(reverse("agents:edit", args=[agent.pk])).content.decode()

    assert "OpenAI of ours" in page
    assert "our-model" in page


@pytest.mark.parametrize("host", ["0177.0.0.2", "１２７.0.0.1", "[fec0::1]"])
def test_a_run_with_a_host_that_was_stored_before_fails_with_a_sentence(idle_engine, agent, custom_provider, host):
    custom_provider.base_url = f"http://{host}/v1"
    custom_provider.save()
    cached_providers.invalidate()

    answer = Caller(api_key(member(Role.EDITOR))).post(f"/api/agents/{agent.pk}/generate", {"messages": "Hello"})

    assert answer.status_code == 424
    assert answer.body["error"].startswith(f"'{host.strip('[]')}' is not")
