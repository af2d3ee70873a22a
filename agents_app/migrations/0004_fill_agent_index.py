from __future__ import annotations

import json
from typing import Any

from django.db import migrations

from agents_app.index import columns


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
            AgentIndex.objects.create(agent=agent, is_live=is_live, is_head=is_head, **said)


def clear(apps: Any, schema_editor: Any) -> None:
    apps.get_model("agents_app", "AgentIndex").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("agents_app", "0003_agent_index"),
        ("versions_app", "0001_initial"),
    ]

    operations = [migrations.RunPython(fill, clear)]
