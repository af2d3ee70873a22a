"""The import of the clients of MCP servers at the start of a process."""

import pytest

from tools_app import preload
from tools_app.models import McpServer


@pytest.fixture
def imported(monkeypatch):
    """Return the names of the modules that are imported at the start. The test keeps its connection."""
    names = []
    monkeypatch.setattr(preload, "import_module", names.append)
    monkeypatch.setattr(preload, "close_connection", lambda: None)
    return names


@pytest.mark.django_db
def test_the_clients_are_imported_only_where_a_server_is_enabled(imported):
    preload.preload_clients()
    McpServer.objects.create(key="off", title="Off", url="https://mcp.example.org", is_enabled=False)
    preload.preload_clients()
    assert imported == []

    McpServer.objects.create(key="on", title="On", url="https://mcp.example.org")
    preload.preload_clients()
    assert imported == ["tools_app.mcp.calls"]
