"""Lists of the editor that are too long for its page: MCP tools and knowledge bases."""

import pytest

from agents_app.forms.tools import knowledge, mcp
from agents_app.registry import Entry, Kind, registry


@pytest.fixture
def tools(monkeypatch):
    """Let two servers have five tools, of which the list has room for three."""
    monkeypatch.setattr(mcp, "MAX_UNSELECTED_TOOLS", 3)
    keys = ["desk_book", "desk_cancel", "shop_price", "shop_reserve", "shop_stock"]
    entries = {
        key: Entry(
            Kind.MCP_TOOL, key, key.title(), f"About {key}.", server_title=key[:4].title(), definition_hash="a" * 64
        )
        for key in keys
    }
    monkeypatch.setattr(registry, "staff_entries_of", lambda kind: entries if kind == Kind.MCP_TOOL else {})
    return keys


def keys_of(tool_list):
    return [tool.key for server in tool_list.rows for tool in server.tools]


def test_the_first_tools_are_listed_with_the_number_of_the_others(tools):
    result = mcp.build_tool_list({}, "")

    assert keys_of(result) == tools[:3]
    assert result.more == 2
    assert [(server.key, server.selected_count, server.tool_count) for server in result.rows] == [
        ("desk", 0, 2),
        ("shop", 0, 3),
    ]


def test_selected_tools_are_listed_beside_the_room_for_others(tools):
    value = {"shop": {"tools": {"reserve": {}, "stock": {}}}}

    result = mcp.build_tool_list(value, "")

    assert keys_of(result) == [*tools[2:], *tools[:2]]  # the server in use comes first
    assert result.more == 0


def test_a_search_lists_matches_and_what_is_selected(tools):
    result = mcp.build_tool_list({"desk": {"tools": {"book": {}}}}, "", "about SHOP st")

    assert keys_of(result) == ["desk_book", "shop_stock"]
    assert (result.more, result.query) == (0, "about SHOP st")


def test_a_search_without_matches_lists_what_is_selected(tools):
    assert keys_of(mcp.build_tool_list({"desk": {"tools": {"book": {}}}}, "", "nothing")) == ["desk_book"]
    assert keys_of(mcp.build_tool_list({}, "", "nothing")) == []


@pytest.fixture
def bases(monkeypatch):
    monkeypatch.setattr(knowledge, "MAX_UNSELECTED_BASES", 2)
    entries = {key: Entry(Kind.KNOWLEDGE, key, key.title(), f"About {key}.") for key in ("a", "b", "c", "d")}
    monkeypatch.setattr(registry, "staff_entries_of", lambda kind: entries if kind == Kind.KNOWLEDGE else {})


def test_the_first_knowledge_bases_are_listed_with_the_selected_ones(bases):
    result = knowledge.build_base_list({"d": {}}, "")

    assert [(row.key, row.is_selected) for row in result.rows] == [("a", False), ("b", False), ("d", True)]
    assert result.more == 1


def test_a_search_lists_matching_knowledge_bases(bases):
    result = knowledge.build_base_list({"d": {}}, "", "ABOUT c")

    assert [row.key for row in result.rows] == ["c", "d"]
    assert result.more == 0


def test_a_blank_key_of_a_page_without_scripts_selects_nothing():
    assert mcp.compose_selection({"mcp-tool": ["", "office_add"]}, {}) == {"office": {"tools": {"add": {}}}}
    assert knowledge.compose_knowledge({"knowledge-base": [""]}, {}) == {}
