"""Add what the variants of agents name to the references of their versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db import migrations

BATCH_SIZE = 100  # versions, each of which may have megabytes
CONDITIONAL = "conditional"
# The models in a memory, by the members that lead to them.
MEMORY_MODELS = (
    ("embedder",),
    ("options", "generateTitle", "model"),
    ("observationalMemory", "model"),
    ("observationalMemory", "observation", "model"),
    ("observationalMemory", "reflection", "model"),
)


def add_references(apps: Any, schema_editor: Any) -> None:
    versions = apps.get_model("versions_app", "AgentVersion").objects.using(schema_editor.connection.alias)
    # Most versions have no variants: their snapshots are not read.
    with_variants = versions.filter(snapshot_text__contains=f'"{CONDITIONAL}":').order_by("pk")
    for version in with_variants.only("pk", "references", "snapshot_text").iterator(BATCH_SIZE):
        references = dict(version.references)
        for field, key in named_in_variants(json.loads(version.snapshot_text).get(CONDITIONAL)):
            keys = references.setdefault(f"{CONDITIONAL}.{field}", [])
            if key not in keys:
                keys.append(key)
        if references != version.references:
            versions.filter(pk=version.pk).update(references=references)


def named_in_variants(conditional: Any) -> Iterator[tuple[str, str]]:
    """Yield the field and the key of each reference in the variants of a configuration."""
    for field, variants in (conditional if isinstance(conditional, dict) else {}).items():
        for variant in variants or ():
            value = variant.get("value")
            if field == "tools":
                yield from ((field, key) for key in value)
            elif field == "model":
                yield field, value["provider"]
            elif isinstance(value, str):
                yield field, value
            elif isinstance(value, dict):
                yield from (("memory.model", provider) for provider in providers_of_memory(value))


def providers_of_memory(memory: dict[str, Any]) -> Iterator[str]:
    for names in MEMORY_MODELS:
        choice: Any = memory
        for name in names:
            choice = choice.get(name) if isinstance(choice, dict) and choice.get("enabled", True) else None
        if isinstance(choice, dict):
            provider = str(choice.get("provider") or "")
        else:
            provider = choice.partition("/")[0] if isinstance(choice, str) and "/" in choice else ""
        if provider and provider != "local":
            yield provider


class Migration(migrations.Migration):
    dependencies = [
        ("versions_app", "0012_one_index_of_authors"),
    ]

    operations = [
        # The references stay when this is reversed: an earlier release does not read them.
        migrations.RunPython(add_references, migrations.RunPython.noop),
    ]
