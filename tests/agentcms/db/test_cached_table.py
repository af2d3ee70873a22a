"""The age of records that a process caches."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cachetools import TTLCache
from django.db import connection, transaction

from agentcms.cache import SizeLimitedCache
from agentcms.db.cached_table import CachedTable
from knowledge_app.models import KnowledgeBase
from knowledge_app.tool.cached_bases import base_table
from runs_app.models import ModelProvider
from runs_app.providers.cached_providers import provider_table
from tools_app.acp.cached_agents import acp_table
from tools_app.mcp.cached_servers import server_table
from tools_app.models import AcpAgent, McpServer


def test_the_age_is_counted_from_the_beginning_of_the_reading():
    """A change is not seen by a reading that began before it. It must not be hidden for longer than a second."""
    readings = []

    def read_slowly():
        readings.append(time.monotonic())
        time.sleep(0.2)
        return {"a": len(readings)}

    table = CachedTable(read_slowly, str, seconds=0.3)
    first, cached = table.find("a"), table.find("a")
    while table.find("a") == 1:
        time.sleep(0.001)

    assert (first, cached) == (1, 1)
    assert readings[1] - readings[0] < 0.49


@pytest.mark.parametrize("change", ["reload", "invalidate"])
def test_a_reading_that_began_before_a_change_does_not_hide_it(change):
    stored = {"a": 1}
    hooks = []

    def read():
        records = dict(stored)
        if hooks:  # another thread changes the table before this reading ends
            hooks.pop()()
        return records

    def change_meanwhile():
        stored["a"] = 2
        getattr(table, change)()

    table = CachedTable(read, str, seconds=60)
    hooks.append(change_meanwhile)

    assert table.find("a") == 1
    assert table.find("a") == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("table", "row", "column"),
    [
        (acp_table, AcpAgent(key="own", title="First", command_key="echo"), "title"),
        (base_table, KnowledgeBase(key="own", name="First"), "name"),
        (provider_table, ModelProvider(key="own", title="First"), "title"),
        (server_table, McpServer(key="own", title="First"), "title"),
    ],
    ids=["ACP agents", "knowledge bases", "model providers", "MCP servers"],
)
def test_a_reading_before_the_commit_does_not_hide_the_change(monkeypatch, table, row, column):
    """Another thread reads the table between the change and its commit."""
    monkeypatch.setattr(table, "_cache", SizeLimitedCache(TTLCache(1, 60)))
    row.save(force_insert=True)

    with transaction.atomic():
        setattr(row, column, "Second")
        row.save()
        meanwhile = read_in_thread(table)

    assert (getattr(meanwhile, column), getattr(table.find("own"), column)) == ("First", "Second")


def read_in_thread(table):
    def read():
        try:
            return table.find("own")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(read).result()
