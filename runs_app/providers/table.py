"""Who offers models: the built-in providers, those that code registers, and those that staff keep."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cachetools import TTLCache
from django.conf import settings

from agentcms.cache import SizeLimitedCache
from agents_app.registry import Entry, Kind, registry
from runs_app.models.provider import ModelProvider
from runs_app.providers.encryption import decrypt

DEMO, CODE = "demo", "code"  # dialects that no staff may choose
CACHE_SECONDS = 1.0  # Changes by staff apply in every process after this time.


@dataclass(frozen=True)
class Provider:
    """One provider, ready to be asked or saying what is missing."""

    key: str
    title: str
    dialect: str  # of ModelProvider.Dialect, "demo", or "code" for one that code registered
    names: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    base_url: str = ""
    secret: str = field(default="", repr=False)
    missing: str = ""  # the name of the setting that must be set before it can be used, where it is one
    reason: str = ""  # why it cannot be used, in sentences
    source: str = "built-in"  # "built-in", "code" or "staff"
    target: Any = field(default=None, repr=False)  # of one that code registered: (name, settings) → Model

    @property
    def is_available(self) -> bool:
        return not self.reason


# The dialects of the built-in ones, and where each dialect's own provider listens.
DIALECTS = {
    "demo": DEMO,
    "openai": ModelProvider.Dialect.OPENAI,
    "anthropic": ModelProvider.Dialect.ANTHROPIC,
    "google": ModelProvider.Dialect.GOOGLE,
    "mistral": ModelProvider.Dialect.COMPATIBLE,
}
HOMES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "mistral": "https://api.mistral.ai/v1",
}


NO_KEY = "It has no key."
NOT_SENDABLE = "Its key has characters that no key has."


def is_sendable(secret: str) -> bool:
    """Whether a key can stand in a header. The error of one that cannot would quote it."""
    return bool(re.fullmatch(r"[!-~]+", secret))


@dataclass(frozen=True)
class Table:
    """Every provider by key; `revision` changes with anything in it."""

    providers: Mapping[str, Provider]
    revision: str

    def __iter__(self) -> Iterator[Provider]:
        return iter(self.providers.values())

    def find(self, name: str) -> Provider | None:
        """By key, then by alias."""
        return self.providers.get(name) or next((each for each in self if name in each.aliases), None)


def built_in(entry: Entry) -> Provider:
    """A provider that is registered in code; the keys of ours come from the environment."""
    key, title, names = entry.key, entry.title, entry.names
    if entry.target is not None:
        return Provider(key, title, CODE, names, source="code", target=entry.target)
    if key not in DIALECTS:
        return Provider(key, title, CODE, names, reason="Nothing that runs was registered for it.", source="code")
    secret = settings.MODEL_KEYS.get(key, "").strip()
    setting = f"{key.upper()}_API_KEY" if key != DEMO and not is_sendable(secret) else ""
    reason = NO_KEY if not secret else NOT_SENDABLE
    return Provider(
        key,
        title,
        DIALECTS[key],
        names,
        base_url=settings.MODEL_URLS.get(key) or HOMES.get(key, ""),
        secret="" if setting else secret,
        missing=setting,
        reason=f"{reason} Set {setting}, or keep a key for it in the admin." if setting else "",
    )


def provider_from_row(row: ModelProvider) -> Provider:
    """A provider that staff keep."""
    secret = decrypt(row.encrypted_key) if row.encrypted_key else ""
    base_url = row.base_url or HOMES.get(row.dialect, "")
    missing = "PROVIDER_KEY_SECRET" if secret is None else ""
    return Provider(
        row.key,
        row.title,
        row.dialect,
        tuple(row.names),
        tuple(row.aliases),
        base_url,
        secret if secret and is_sendable(secret) else "",
        missing,
        lack(row, secret, base_url),
        "staff",
    )


def lack(row: ModelProvider, secret: str | None, base_url: str) -> str:
    """Why a provider that staff keep cannot be used; nothing where it can. A server of their own may want no key."""
    if not row.is_enabled:
        return "It is switched off in the admin."
    if secret is None:
        return "Its key was encrypted with another PROVIDER_KEY_SECRET. Enter the key again in the admin."
    if not base_url:
        return "It has no base URL. Enter one in the admin."
    if secret and not is_sendable(secret):
        return f"{NOT_SENDABLE} Enter it again in the admin."
    return f"{NO_KEY} Enter one in the admin." if not secret and not row.base_url else ""


_secrets: set[str] = set()  # every key that this process has known: what answers now may have begun with an older one


def without_secrets(text: str) -> str:
    """A text in which no provider's key stands, whatever it looks like."""
    for secret in _secrets.copy():
        text = text.replace(secret, "…")
    return text


def read() -> Table:
    """The table as the environment, the registry and the database have it now."""
    found = {entry.key: built_in(entry) for entry in registry.entries(Kind.MODEL_PROVIDER)}
    rows = list(ModelProvider.objects.all())
    found |= {row.key: provider_from_row(row) for row in rows}
    _secrets.update(each.secret for each in found.values() if each.secret)
    said = "\n".join(f"{row.pk} {row.updated_at.isoformat()}" for row in rows)
    return Table(found, hashlib.sha256(f"{registry.fingerprint}\n{said}".encode()).hexdigest()[:12])


def kept_entries() -> dict[str, Entry]:
    """The providers that staff keep, by key and by alias: no agent that names one is warned of it."""
    return {
        name: Entry(Kind.MODEL_PROVIDER, each.key, each.title, names=each.names, source="staff")
        for each in table()
        if each.source == "staff"
        for name in (each.key, *each.aliases)
    }


_tables: SizeLimitedCache[str, Table] = SizeLimitedCache(TTLCache(1, CACHE_SECONDS))


def table() -> Table:
    """Return the providers, from the cache where it is less than a second old."""
    return _tables.get_or_create("table", read)


def invalidate() -> None:
    """Remove the table from the cache of this process."""
    _tables.clear()
