"""Migrations that do not depend on current application code."""

import ast
from importlib import import_module

import pytest
from django.apps import apps

from agentcms.server.processes import PROJECT
from agents_app.editing.change_context import change
from agents_app.models import Agent, AgentIndex
from agents_app.models.search_index import index_is_current
from tests.factories import AgentFactory

MIGRATIONS = sorted(PROJECT.glob("*_app/migrations/0*.py"))
# A key default, a validator and an encoder, which migrations only name, and operations that belong to migrations.
NAMED = {"agentcms.ids", "access_app.models", "agentcms.db.json_encoder", "agentcms.db.migration_operations"}


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: f"{path.parent.parent.name} {path.stem}")
def test_a_migration_imports_nothing_that_may_change(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)

    own = {
        name for name in imported if name.partition(".")[0] in {"agentcms", *(p.name for p in PROJECT.glob("*_app"))}
    }
    assert own - NAMED == set()


@pytest.mark.django_db
def test_the_migration_indexes_existing_agents():
    agent = AgentFactory(
        id="Ünï 1", instructions="Grüße die Gäste. 客人 สวัสดี don't_stop", metadata={"team": [1, None]}
    )
    AgentFactory(id="long", instructions="é" * 300 + " word" * 200_000)
    with change(publish=False):
        agent.edit({"name": "Draft", "agents": ["long"]})
    AgentIndex.objects.all().delete()

    import_module("agents_app.migrations.0004_fill_agent_index").fill(apps, None)

    assert all(index_is_current(agent) for agent in Agent.objects.with_versions())
    assert AgentIndex.objects.count() == 3
