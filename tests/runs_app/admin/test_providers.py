"""Model providers and their keys in Django admin."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import WARNING, get_messages
from django.urls import reverse

from access_app.role import Role
from agents_app.editing.change_context import change
from knowledge_app.models import KnowledgeBase
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers
from tests.factories import AgentFactory, UserFactory, member

pytestmark = pytest.mark.django_db

SECRET = "sk-live-3f9a0c77d1b24e"
ADD = reverse("admin:runs_app_modelprovider_add")
FIELDS = {
    "key": "house",
    "title": "House",
    "dialect": "openai-compatible",
    "base_url": "https://models.example.org/v1",
    "secret": SECRET,
    "aliases": "local\r\n internal\r\n",
    "names": "llama",
    "is_enabled": "on",
}


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


@pytest.fixture
def custom_provider(staff):
    staff.post(ADD, FIELDS)
    return ModelProvider.objects.get(key="house")


def address(row):
    return reverse("admin:runs_app_modelprovider_change", args=[row.pk])


def errors(answer):
    return {name: list(messages) for name, messages in answer.context["adminform"].form.errors.items()}


def secret_of(key):
    cached_providers.invalidate()
    return cached_providers.get_table().find(key).secret


def test_a_superuser_creates_a_provider_with_its_key(custom_provider):
    assert secret_of("house") == SECRET
    assert SECRET not in custom_provider.encrypted_key


def test_a_key_appears_on_no_page_and_in_no_log(staff, custom_provider):
    pages = [staff.get(address(custom_provider)), staff.get(reverse("admin:runs_app_modelprovider_changelist"))]
    pages.append(staff.post(address(custom_provider), {**FIELDS, "title": ""}))

    assert [page.status_code for page in pages] == [200, 200, 200]
    assert not any(
        SECRET in page.content.decode() or custom_provider.encrypted_key in page.content.decode() for page in pages
    )
    assert SECRET not in str(list(LogEntry.objects.values()))


def test_an_empty_field_preserves_the_key(staff, custom_provider):
    staff.post(address(custom_provider), {**FIELDS, "secret": "", "title": "Our house"})

    assert ModelProvider.objects.get().title == "Our house"
    assert secret_of("house") == SECRET


def test_a_key_can_be_changed_and_deleted(staff, custom_provider):
    staff.post(address(custom_provider), {**FIELDS, "secret": "another"})
    assert secret_of("house") == "another"

    staff.post(address(custom_provider), {**FIELDS, "secret": "", "delete_secret": "on"})
    assert secret_of("house") == ""


@pytest.mark.parametrize("moved", [{"base_url": "https://elsewhere.example.org"}, {"dialect": "anthropic"}])
def test_a_provider_with_a_new_address_needs_its_key_again(staff, custom_provider, moved):
    answer = staff.post(address(custom_provider), {**FIELDS, "secret": "", **moved})

    assert errors(answer) == {
        "secret": ["The base URL or dialect changed. Enter the key again, or delete the stored one."]
    }
    assert staff.post(address(custom_provider), {**FIELDS, **moved}).status_code == 302


@pytest.mark.parametrize(
    ("fault", "field", "words"),
    [
        ({"key": "No Spaces"}, "key", "Use lowercase letters"),
        ({"secret": "two words"}, "secret", "contains invalid characters"),
        ({"base_url": "ftp://models.example.org"}, "base_url", "must begin with http"),
        ({"base_url": "http://[::1"}, "base_url", "invalid port or address"),
        ({"base_url": "http://10.0.0.1/v1"}, "base_url", "Add its network to OUTBOUND_NETWORKS"),
        ({"base_url": "http://0177.0.0.2/v1"}, "base_url", "'0177.0.0.2' is not a host of a URL."),
        ({"base_url": "http://１２７.0.0.1/v1"}, "base_url", "is not a host of a URL."),
        ({"base_url": "http://[fec0::1]/v1"}, "base_url", "Add its network to OUTBOUND_NETWORKS"),
        ({"aliases": "openai"}, "aliases", "Another provider already uses openai"),
        ({"aliases": "house"}, "aliases", "Another provider already uses house"),
        ({"allowed_settings": "two words"}, "allowed_settings", "two words"),
    ],
)
def test_an_invalid_value_is_an_error_at_its_field(staff, fault, field, words):
    answer = staff.post(ADD, {**FIELDS, **fault})

    assert [*errors(answer)] == [field]
    assert words in errors(answer)[field][0]


def test_no_provider_takes_the_alias_of_another_one(staff, custom_provider):
    answer = staff.post(ADD, {**FIELDS, "key": "internal", "aliases": ""})

    assert errors(answer) == {
        "key": ["The provider House has the alias internal. Choose another ID, or remove the alias."]
    }
    assert staff.post(address(custom_provider), {**FIELDS, "aliases": "local"}).status_code == 302
    assert staff.post(ADD, {**FIELDS, "key": "internal", "aliases": ""}).status_code == 302


def test_lists_are_written_one_per_line(staff, custom_provider):
    page = staff.get(address(custom_provider)).content.decode()

    assert custom_provider.aliases == ["local", "internal"]
    assert "local\ninternal</textarea>" in page
    assert "[&quot;" not in page
    assert "Delete the stored key" not in staff.get(ADD).content.decode()


def test_the_list_shows_which_providers_are_usable(staff, custom_provider):
    ModelProvider.objects.create(key="attic", title="Attic", is_enabled=False)

    page = staff.get(reverse("admin:runs_app_modelprovider_changelist")).content.decode()

    assert "Ready" in page
    assert "Attic is disabled. Enable it under Model providers." in page


def test_only_superusers_see_providers(client, custom_provider):
    client.force_login(member(Role.MANAGER, "", is_staff=True))

    assert client.get(address(custom_provider)).status_code == 403
    assert client.post(ADD, {**FIELDS, "key": "mine"}).status_code == 403
    assert "Model providers" not in client.get(reverse("admin:index")).content.decode()


def test_the_form_asks_for_one_key(staff, custom_provider):
    page = staff.get(reverse("admin:runs_app_modelprovider_change", args=[custom_provider.pk])).content.decode()
    labels = [" ".join(label.split()) for label in re.findall(r"<label[^>]*>([^<]*)</label>", page)]

    assert "Provider ID:" in labels
    assert [label for label in labels if "key" in label.lower()] == ["API key:", "Delete the stored key"]


def test_deleting_a_provider_names_the_agents_and_the_knowledge_bases_that_use_it(staff, custom_provider):
    AgentFactory(name="Porter", model={"provider": custom_provider.key, "name": "small"})
    AgentFactory(name="Other")
    AgentFactory(name="By alias", model={"provider": "internal", "name": "small"})
    drafted = AgentFactory(name="Released", model={"provider": custom_provider.key, "name": "small"})
    with change(publish=False):
        drafted.edit({"model": {"provider": "demo", "name": "echo"}})
        rules = {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": "pro"}]}
        variant = {"value": {"provider": custom_provider.key, "name": "small"}, "rules": rules}
        AgentFactory(name="Tiered").edit({"conditional": {"model": [variant]}})
    for key, embedder in (("a", "internal/embedding"), ("b", "house/embedding"), ("c", "housekeeper/embedding")):
        KnowledgeBase.objects.create(key=key, name=f"Base {key}", embedder=embedder)

    page = staff.get(reverse("admin:runs_app_modelprovider_delete", args=[custom_provider.pk])).content.decode()

    assert "<strong>Knowledge bases use it</strong> and can no longer be searched: Base a, Base b.</p>" in page
    assert "<strong>Agents use it</strong> and will not answer: By alias, Porter, Released, Tiered" in page
    assert "Other" not in page.partition("Agents use it")[2].partition("</p>")[0]
    assert 'value="Delete model provider"' in page


@pytest.mark.parametrize(
    ("changed", "losing"),
    [
        ({"key": "home"}, "Porter"),
        ({"aliases": "local"}, "By alias"),
        ({"key": "home", "aliases": "local\r\ninternal\r\nhouse"}, ""),
        ({"is_enabled": ""}, "By alias, Porter"),
        ({"title": "Home"}, ""),
    ],
)
def test_a_change_that_takes_a_provider_from_agents_names_them(staff, custom_provider, changed, losing):
    AgentFactory(name="Porter", model={"provider": "house", "name": "small"})
    AgentFactory(name="By alias", model={"provider": "internal", "name": "small"})

    answer = staff.post(address(custom_provider), {**FIELDS, "secret": "", **changed})

    warnings = [str(message) for message in get_messages(answer.wsgi_request) if message.level == WARNING]
    assert warnings == ([f"These agents will not answer: {losing}."] if losing else [])


def test_a_provider_of_the_code_takes_the_place_of_a_renamed_one(staff):
    staff.post(ADD, {**FIELDS, "key": "openai", "aliases": ""})
    AgentFactory(name="Porter", model={"provider": "openai", "name": "small"})

    answer = staff.post(address(ModelProvider.objects.get()), {**FIELDS, "secret": "", "aliases": ""})

    assert WARNING not in [message.level for message in get_messages(answer.wsgi_request)]


def test_providers_are_not_deleted_without_naming_the_agents(staff, custom_provider):
    page = staff.get(reverse("admin:runs_app_modelprovider_changelist")).content.decode()

    assert 'value="delete_selected"' not in page


def test_a_taken_id_is_named_as_the_form_names_it(staff, custom_provider):
    answer = staff.post(ADD, {**FIELDS, "aliases": ""})

    assert errors(answer) == {"key": ["Another provider has this ID. Choose another one."]}
