"""The tools of MCP servers in the editor's form."""

import pytest

from agents_app.forms.tools.mcp import compose_selection


@pytest.mark.parametrize("keys", [["office_*", "office_add"], ["office_add", "office_*"], ["office_*"]])
def test_all_tools_of_a_server_include_one_that_is_selected_too(keys):
    assert compose_selection({"mcp-tool": keys}, {"office": {}}) == {"office": {}}
