"""The configurations that runs began with. Runs with an equal one share a row, whose key is a hash of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import ClassVar
from uuid import UUID

from cachetools import LRUCache, TTLCache
from django.db import models, transaction
from django.utils import timezone

from agentcms.cache import SizeLimitedCache
from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping, JSONObject

REFRESH_INTERVAL = 60.0  # seconds in which a process writes `used_at` of one row once
UNUSED_PERIOD = timedelta(days=1)  # much longer than the interval, so that no run is about to refer to an expired row
CACHED_CHARACTERS = 4_000_000

_texts: SizeLimitedCache[UUID, str] = SizeLimitedCache(LRUCache(CACHED_CHARACTERS, getsizeof=len))
_recently_saved: SizeLimitedCache[UUID, bool] = SizeLimitedCache(TTLCache(10_000, REFRESH_INTERVAL))


class RunConfiguration(models.Model):
    """The snapshot of a version, under wire names. Rows never change, so a process may cache them."""

    id = models.UUIDField(primary_key=True, editable=False)  # the first half of the SHA-256 of the text
    text = models.TextField(editable=False, help_text="Canonical JSON.")
    used_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "configuration of runs"
        indexes: ClassVar = [models.Index(fields=["used_at"], name="run_configuration_use")]

    def __str__(self) -> str:
        return str(self.pk)


def save_configuration(configuration: JSONMapping) -> UUID:
    """Save a configuration unless it is stored, and return its key."""
    text = canonical(configuration)
    key = UUID(sha256_hex(text)[:32])
    if _recently_saved.get(key) is None:
        RunConfiguration.objects.bulk_create(
            [RunConfiguration(id=key, text=text)],
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["used_at"],
        )
        # Not earlier: the transaction may be rolled back.
        transaction.on_commit(partial(_recently_saved.set, key, True))
    return key


def load_configuration(key: UUID) -> JSONObject:
    """Return a stored configuration, which the caller may change."""

    def read() -> str:
        return RunConfiguration.objects.values_list("text", flat=True).get(pk=key)

    configuration: JSONObject = json.loads(_texts.get_or_create(key, read))
    return configuration


def preload_configurations(keys: Iterable[UUID | None]) -> None:
    """Read those of these configurations that are not cached, with one query."""
    distinct = {key for key in keys if key is not None}
    if missing := distinct - _texts.get_many(distinct).keys():
        for key, text in RunConfiguration.objects.filter(pk__in=missing).values_list("pk", "text"):
            _texts.set(key, text)


def clear_cache() -> None:
    """Forget which configurations are stored."""
    _texts.clear()
    _recently_saved.clear()
