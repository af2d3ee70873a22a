"""Agents that use what another process stored within the last second, while this one has the table of before."""

import pytest
from cachetools import TTLCache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentcms.cache import SizeLimitedCache
from agents_app.registry import Kind
from evals_app.scorers.cached_scorers import scorer_table
from evals_app.scorers.changes import create_scorer
from knowledge_app.models import KnowledgeBase
from knowledge_app.tool.cached_bases import base_table
from runs_app.models import ModelProvider
from runs_app.providers.cached_providers import provider_table
from runs_app.resolution import stored_agents
from tests.agent_exchange import import_file, record
from tests.api_client import AGENTS, Caller, agent_path
from tests.factories import api_key, member
from tools_app.acp.cached_agents import acp_table
from tools_app.mcp.cached_servers import server_table
from tools_app.mcp.definitions import Definition
from tools_app.models import AcpAgent, McpServer

pytestmark = pytest.mark.django_db

ADD = Definition("add", "", {"type": "object"})
TABLES = (acp_table, base_table, provider_table, scorer_table, server_table)
ADDED = {
    Kind.MODEL_PROVIDER: {"model": {"provider": "house", "name": "small"}},
    Kind.KNOWLEDGE: {"knowledge": {"handbook": {}}},
    Kind.ACP_AGENT: {"tools": ["acp-coder"]},
    Kind.MCP_TOOL: {"mcpClients": {"office": {"tools": {"add": {"hash": ADD.hash}}}}},
    Kind.SCORER: {"scorers": {"tone": {}}},
}


@pytest.fixture
def caller():
    return Caller(api_key(member("publisher")))


@pytest.fixture(autouse=True)
def tables_of_before(monkeypatch):
    """Read all tables, which do not expire during a test, and then store entries as another process does."""
    for cached in TABLES:
        monkeypatch.setattr(cached, "_cache", SizeLimitedCache(TTLCache(1, 60)))
    contents = [(cached, cached.get()) for cached in TABLES]
    # Without signals, by which this process would learn of them.
    ModelProvider.objects.bulk_create([ModelProvider(key="house", title="House", base_url="https://m.example.org/v1")])
    KnowledgeBase.objects.bulk_create([KnowledgeBase(key="handbook", name="Handbook", owner_id="")])
    AcpAgent.objects.bulk_create([AcpAgent(key="coder", title="Coder", command_key="coder", is_enabled=False)])
    tools = {ADD.name: ADD.to_json()}
    McpServer.objects.bulk_create([McpServer(key="office", title="Office", url="https://m.example.org", tools=tools)])
    snapshot = {"name": "Tone", "type": "check", "presetConfig": {"check": "includes", "value": "You"}}
    create_scorer(snapshot, owner_id="", author="ann", id="tone")

    def restore():
        for cached, content in contents:
            cached._cache.set("table", content)

    restore()
    return restore


@pytest.fixture(params=list(ADDED), ids=lambda kind: kind.replace(" ", "_"))
def fields(request):
    return ADDED[request.param]


def is_missing(warning):
    return warning["message"].startswith("No ")


def test_a_new_agent_has_no_warning_of_it(caller, fields):
    created = caller.create(**fields)

    assert created.status_code == 201
    assert not any(map(is_missing, created.body["warnings"]))


def test_a_changed_agent_has_no_warning_of_it(caller, fields):
    caller.create()

    changed = caller.patch(agent_path(), fields)

    assert not any(map(is_missing, changed.body["warnings"]))


def test_an_imported_agent_has_it(caller, fields):
    imported = import_file(caller, [record("concierge", **fields)], "&strict=true")

    assert imported["listed"] == 1
    assert "No " not in str(imported["records"]), "there is no command for the ACP agent, which is another reason"


def test_a_run_has_it(caller, fields, tables_of_before):
    caller.create(**fields)
    tables_of_before()  # another process may run it

    built = stored_agents.get("concierge").build()

    assert not any(warning.message.startswith("No ") for warning in built.warnings)


def test_a_save_reads_a_table_once_for_all_that_is_missing(caller):
    fields = {"knowledge": {f"gone-{number}": {} for number in range(5)}, "scorers": {"gone": {}, "lost": {}}}

    with CaptureQueriesContext(connection) as queries:
        created = caller.create(**fields)

    read = [query["sql"] for query in queries if "knowledge_app_knowledgebase" in query["sql"]]
    assert len(created.body["warnings"]) == 7
    assert len(read) == 1


def test_a_list_reads_no_table_for_what_is_missing(caller):
    caller.create(knowledge={"gone": {}})

    with CaptureQueriesContext(connection) as queries:
        listed = caller.get(AGENTS)

    assert [warning["key"] for warning in listed.body["agents"][0]["warnings"]] == ["gone"]
    assert not any("knowledge_app_knowledgebase" in query["sql"] for query in queries)
