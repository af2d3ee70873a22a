"""The tools of MCP servers in the editor's form."""

import pytest

from agents_app.configuration.mcp_clients import selected_tools
from agents_app.forms.tools.mcp import compose_selection


@pytest.mark.parametrize("keys", [["office_*", "office_add"], ["office_add", "office_*"], ["office_*"]])
def test_all_tools_of_a_server_include_one_that_is_selected_too(keys):
    assert compose_selection({"mcp-tool": keys}, {"office": {}}) == {"office": {}}


@pytest.mark.parametrize("stored", [{"my_office": {"tools": {"add": {}}}}, {"my_office": {}}])
def test_an_underscore_in_the_key_of_a_server_stays(stored):
    keys = [tool.key for tool in selected_tools(stored)]

    assert compose_selection({"mcp-tool": keys}, stored) == stored


def test_a_server_without_a_selected_tool_stays_as_it_is_stored():
    assert compose_selection({}, {"office": {"tools": {}}}) == {"office": {"tools": {}}}
