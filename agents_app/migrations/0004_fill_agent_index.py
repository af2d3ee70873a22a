"""The words are cut here as they were when this landed: a migration does not change with the application."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db import migrations

MOST_BYTES = 400_000
LONGEST_WORD = 200
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
SPACELESS += "\U00020000-\U0003ffff"


def fill(apps: Any, schema_editor: Any) -> None:
    """Index the agents that were there before the index."""
    Agent = apps.get_model("agents_app", "Agent")
    AgentIndex = apps.get_model("agents_app", "AgentIndex")
    agents = Agent.objects.filter(active_version__isnull=False, head_version__isnull=False)
    for agent in agents.select_related("active_version", "head_version").iterator(200):
        live, head = agent.active_version, agent.head_version
        draft = live.snapshot_hash != head.snapshot_hash
        states = [(live, True, not draft)] + ([(head, False, True)] if draft else [])
        for version, is_live, is_head in states:
            said = columns(agent.pk, json.loads(version.snapshot_text))
            AgentIndex.objects.create(agent_id=agent.pk, is_live=is_live, is_head=is_head, **said)


def clear(apps: Any, schema_editor: Any) -> None:
    apps.get_model("agents_app", "AgentIndex").objects.all().delete()


def columns(agent_id: str, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    texts = (agent_id, *(snapshot[field] for field in ("name", "description", "instructions")))
    kept = " | ".join(" ".join(words(text)) for text in texts)
    if len(kept) * 4 > MOST_BYTES:
        kept = kept.encode()[:MOST_BYTES].decode(errors="ignore")
        kept = kept.rpartition(" ")[0] if " " in kept else ""
    return {**{field: snapshot[field] for field in ("name", "metadata", "agents")}, "words": " ".join(kept.split())}


def words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return [word[:LONGEST_WORD] for word in pattern().findall(folded)]


@cache
def pattern() -> re.Pattern[str]:
    """A word in any script: letters, digits and their marks; where a script puts no space, each sign is a word."""
    codes = (chr(code) for code in range(0x300, sys.maxunicode + 1))
    marks = "".join(code for code in codes if unicodedata.category(code).startswith("M"))
    return re.compile(rf"[{SPACELESS}][{marks}]*|(?:[^\W_{SPACELESS}]|[{marks}])+")


class Migration(migrations.Migration):
    dependencies = [
        ("agents_app", "0003_agent_index"),
        ("versions_app", "0001_initial"),
    ]

    operations = [migrations.RunPython(fill, clear)]
