"""The table of model providers: built-in ones, those that code registers, and those that staff add in the admin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agentcms.db.cached_table import CachedTable, TableContent
from agentcms.db.encryption import PROVIDER_KEYS, decrypt
from agents_app.registry import Entry, Kind, registry
from runs_app.models.provider import ModelProvider
from runs_app.providers.allowed_settings import normalize_names, split_by_provider

DEMO_DIALECT, CODE_DIALECT = "demo", "code"  # not available to staff

BUILT_IN_DIALECTS = {
    "demo": DEMO_DIALECT,
    "openai": ModelProvider.Dialect.OPENAI,
    "anthropic": ModelProvider.Dialect.ANTHROPIC,
    "google": ModelProvider.Dialect.GOOGLE,
    "mistral": ModelProvider.Dialect.COMPATIBLE,
}
DEFAULT_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "mistral": "https://api.mistral.ai/v1",
    # Of dialects; no built-in provider has them.
    "cohere": "https://api.cohere.com/v2",
    "voyage": "https://api.voyageai.com/v1",
}
EMBEDDING_ONLY_DIALECTS = {
    ModelProvider.Dialect.COHERE,
    ModelProvider.Dialect.VOYAGE,
    ModelProvider.Dialect.BEDROCK,
}
NO_KEY_MESSAGE = "{title} has no API key."
EMBEDDING_ONLY_MESSAGE = "{title} only has embedding models. Choose another provider."
INVALID_PROVIDER_KEY_MESSAGE = "The API key of {title} contains invalid characters."


@dataclass(frozen=True)
class Provider:
    """A provider with its connection data, or with the reason why it is not available."""

    key: str
    title: str
    dialect: str  # a ModelProvider.Dialect, "demo", or "code" for providers that code registers
    names: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    base_url: str = ""
    secret: str = field(default="", repr=False)
    missing_setting: str = ""  # the name of the environment variable that would make it available
    reason: str = ""  # a message for users if it is not available
    source: str = "built-in"  # "built-in", "code" or "staff"
    target: Any = field(default=None, repr=False)  # of a provider in code: (name, settings) → Model
    allowed_settings: frozenset[str] = frozenset()  # that staff add to those of the dialect; names of pydantic-ai
    revision: str = ""  # of the row; the registry has one for what code registers

    @property
    def is_available(self) -> bool:
        return not self.reason

    @property
    def has_only_embedders(self) -> bool:
        return self.dialect in EMBEDDING_ONLY_DIALECTS

    @property
    def no_answer_reason(self) -> str:
        """Why no model of the provider answers an agent, or a blank text."""
        return EMBEDDING_ONLY_MESSAGE.format(title=self.title) if self.has_only_embedders else self.reason


@dataclass(frozen=True)
class ProviderTable:
    """All providers by key. `revision` changes whenever staff change any of them."""

    providers: Mapping[str, Provider]
    revision: str

    def __iter__(self) -> Iterator[Provider]:
        return iter(self.providers.values())

    def find(self, name: str) -> Provider | None:
        """Return a provider by key or alias, or None."""
        return self.providers.get(name) or next((provider for provider in self if name in provider.aliases), None)


def is_valid_key(secret: str) -> bool:
    """Return True if a key can be sent in a header. The error for an invalid one would quote it."""
    return bool(re.fullmatch(r"[!-~]+", secret))


def provider_from_entry(entry: Entry) -> Provider:
    """Return a provider that code registers. API keys of the built-in ones come from the environment."""
    key, title, names = entry.key, entry.title, entry.names
    allowed = normalize_names(split_by_provider(settings.MODEL_ALLOWED_SETTINGS).get(key, ()))
    if entry.target is not None:
        return Provider(key, title, CODE_DIALECT, names, source="code", target=entry.target, allowed_settings=allowed)
    if key not in BUILT_IN_DIALECTS:
        reason = f"{title} was registered without a target. Register it with one."
        return Provider(key, title, CODE_DIALECT, names, reason=reason, source="code")
    secret = settings.MODEL_KEYS.get(key, "").strip()
    is_usable = key == DEMO_DIALECT or is_valid_key(secret)
    setting = "" if is_usable else f"{key.upper()}_API_KEY"
    problem = (INVALID_PROVIDER_KEY_MESSAGE if secret else NO_KEY_MESSAGE).format(title=title)
    return Provider(
        key,
        title,
        BUILT_IN_DIALECTS[key],
        names,
        base_url=settings.MODEL_URLS.get(key) or DEFAULT_URLS.get(key, ""),
        secret=secret if is_usable else "",
        missing_setting=setting,
        reason="" if is_usable else f"{problem} Set {setting} or add one under Model providers.",
        allowed_settings=allowed,
    )


def provider_from_row(row: ModelProvider) -> Provider:
    """Return a provider that staff added in the admin."""
    secret = decrypt(row.encrypted_key, PROVIDER_KEYS) if row.encrypted_key else ""
    base_url = row.base_url or DEFAULT_URLS.get(row.dialect, "")
    return Provider(
        row.key,
        row.title,
        row.dialect,
        names=tuple(row.names),
        aliases=tuple(row.aliases),
        base_url=base_url,
        secret=secret if secret and is_valid_key(secret) else "",
        missing_setting="PROVIDER_KEY_SECRET" if secret is None else "",
        reason=unavailable_reason(row, secret, base_url),
        source="staff",
        allowed_settings=normalize_names(row.allowed_settings),
        revision=f"{row.pk} {row.updated_at.isoformat()}",
    )


def unavailable_reason(row: ModelProvider, secret: str | None, base_url: str) -> str:
    """Return why a provider of staff is not available, or a blank text. Self-hosted servers may need no key."""
    if not row.is_enabled:
        return f"{row.title} is disabled. Enable it under Model providers."
    if secret is None:
        problem = f"The API key of {row.title} was encrypted with another PROVIDER_KEY_SECRET."
        return f"{problem} Enter the key again under Model providers."
    if not base_url:
        return f"{row.title} has no base URL. Enter one under Model providers."
    if secret and not is_valid_key(secret):
        return f"{INVALID_PROVIDER_KEY_MESSAGE.format(title=row.title)} Enter it again under Model providers."
    if not secret and not row.base_url:
        return f"{NO_KEY_MESSAGE.format(title=row.title)} Add one under Model providers."
    return ""


_known_secrets: set[str] = set()  # all keys that this process has read; current runs may use older ones


def without_secrets(text: str) -> str:
    """Replace the API keys of all providers in a text."""
    for secret in _known_secrets.copy():
        text = text.replace(secret, "…")
    return text


def load_providers() -> dict[str, Provider]:
    """Load the providers from the environment, the registry and the database."""
    providers = {entry.key: provider_from_entry(entry) for entry in registry.entries(Kind.MODEL_PROVIDER)}
    providers |= {row.key: provider_from_row(row) for row in ModelProvider.objects.all()}
    _known_secrets.update(provider.secret for provider in providers.values() if provider.secret)
    return providers


def staff_entries() -> dict[str, Entry]:
    """Return the providers of staff by key and by alias, so that agents that use them get no warning."""
    return {
        name: Entry(Kind.MODEL_PROVIDER, provider.key, provider.title, names=provider.names, source="staff")
        for provider in get_table()
        if provider.source == "staff"
        for name in (provider.key, *provider.aliases)
    }


provider_table = CachedTable(load_providers, lambda provider: provider.revision)
reload, invalidate = provider_table.reload, provider_table.invalidate


def get_table() -> ProviderTable:
    """Return the table, which is at most a second old. Every run and every warning reads it."""
    return table_of(provider_table.get())


def get_cached_table() -> ProviderTable | None:
    """Return the table if this process has read it within the last second, without a query."""
    content = provider_table.find_cached()
    return table_of(content) if content is not None else None


def table_of(content: TableContent[Provider]) -> ProviderTable:
    return ProviderTable(content.records, content.revision)


def model_unavailable_reason(name: str) -> str:
    """Return why no model of a provider answers an agent, or a blank text."""
    provider = get_table().find(name)
    if provider is None:
        return f"Unknown model provider '{name}'. Choose one in the editor."
    return provider.no_answer_reason
