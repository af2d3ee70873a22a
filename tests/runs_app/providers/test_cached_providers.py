"""The table of providers: built-in, stored and registered."""

import pytest
from django.db import connection

from agents_app.registry import Entry, Kind, registry
from runs_app.exceptions import AgentBuildError
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers
from runs_app.providers.models import get_model_provider

pytestmark = pytest.mark.django_db

SECRET = "sk-live-3f9a0c77d1b24e"


def store_provider(**fields):
    secret = fields.pop("secret", "")
    row = ModelProvider(**{"key": "house", "title": "House", "base_url": "https://models.example.org/v1", **fields})
    row.set_secret(secret)
    row.full_clean()
    row.save()
    return row


def provider_named(name):
    return cached_providers.get_table().find(name)


def test_the_demo_provider_needs_no_key():
    assert provider_named("demo").is_available


@pytest.mark.parametrize("key", ["openai", "anthropic", "google", "mistral"])
def test_a_built_in_provider_without_a_key_names_its_setting(key):
    provider = provider_named(key)

    assert not provider.is_available
    assert provider.missing_setting == f"{key.upper()}_API_KEY"
    assert provider.missing_setting in provider.reason


def test_a_key_in_the_environment_enables_its_provider(settings):
    settings.MODEL_KEYS = {"openai": SECRET}

    provider = provider_named("openai")

    assert provider.is_available
    assert (provider.secret, provider.base_url) == (SECRET, "https://api.openai.com/v1")


def test_a_key_invalid_in_a_header_is_not_used(settings):
    settings.MODEL_KEYS = {"openai": f"{SECRET} twice", "anthropic": f" {SECRET}\n"}

    assert provider_named("openai").reason.startswith(
        "The API key of OpenAI contains invalid characters. Set OPENAI_API_KEY"
    )
    assert provider_named("openai").secret == ""
    assert provider_named("anthropic").secret == SECRET


def test_the_environment_sets_the_base_url(settings):
    settings.MODEL_URLS = {"mistral": "https://gateway.example.org/v1"}

    assert provider_named("mistral").base_url == "https://gateway.example.org/v1"


def test_staff_can_store_providers():
    store_provider(secret=SECRET, aliases=["local"], names=["llama"])

    provider = provider_named("house")

    assert provider.is_available
    assert (provider.secret, provider.names, provider.source) == (SECRET, ("llama",), "staff")
    assert provider_named("local") == provider


def test_a_custom_server_needs_no_key():
    store_provider()

    assert provider_named("house").is_available


def test_a_stored_provider_replaces_a_built_in_one(settings):
    settings.MODEL_KEYS = {"openai": "the environment's"}
    store_provider(key="openai", dialect="openai", base_url="", secret=SECRET)

    provider = provider_named("openai")

    assert (provider.secret, provider.base_url) == (SECRET, "https://api.openai.com/v1")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"is_enabled": False}, "House is disabled. Enable it under Model providers."),
        ({"base_url": ""}, "House has no base URL. Enter one under Model providers."),
        ({"dialect": "anthropic", "base_url": ""}, "House has no API key. Add one under Model providers."),
    ],
)
def test_a_stored_provider_names_what_is_missing(fields, reason):
    store_provider(**fields)

    assert provider_named("house").reason == reason


def test_a_stored_key_is_encrypted():
    row = store_provider(secret=SECRET)

    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM runs_app_modelprovider")
        stored = str(cursor.fetchall())

    assert SECRET not in stored
    assert SECRET not in repr(provider_named("house")) + repr(vars(row))


def test_a_key_cannot_be_decrypted_with_another_secret(settings):
    store_provider(secret=SECRET)
    settings.PROVIDER_KEY_SECRET = "another"
    cached_providers.invalidate()

    provider = provider_named("house")

    assert provider.secret == ""
    assert provider.missing_setting == "PROVIDER_KEY_SECRET"


def test_every_change_creates_another_revision():
    revisions = [cached_providers.get_table().revision]

    row = store_provider()
    revisions.append(cached_providers.get_table().revision)
    row.set_secret("another")
    row.save()
    revisions.append(cached_providers.get_table().revision)
    row.delete()
    revisions.append(cached_providers.get_table().revision)

    assert len(set(revisions)) == 3
    assert revisions[0] == revisions[-1]


def test_code_can_register_a_provider():
    registry.add(Entry(Kind.MODEL_PROVIDER, "attic", "Attic", target=lambda name, choice: name))

    assert provider_named("attic").is_available


def test_registering_a_provider_without_models_is_an_error():
    registry.add(Entry(Kind.MODEL_PROVIDER, "attic", "Attic"))

    assert provider_named("attic").reason == "Attic was registered without a target. Register it with one."


@pytest.mark.parametrize(
    ("choice", "code", "words"),
    [
        ({}, "model_missing", "needs a provider and a name"),
        ({"provider": "openai"}, "model_missing", "needs a provider and a name"),
        ({"provider": "nobody", "name": "m"}, "provider_unknown", "Choose one of anthropic, demo, google"),
        ({"provider": "openai", "name": "m"}, "provider_unavailable", "Set OPENAI_API_KEY"),
    ],
)
def test_an_unknown_model_is_an_error(choice, code, words):
    with pytest.raises(AgentBuildError) as refused:
        get_model_provider(choice)

    assert refused.value.code == code
    assert words in refused.value.message
