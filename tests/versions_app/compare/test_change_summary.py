"""Summaries of changes."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.configuration.field_labels import FIELD_LABELS
from agents_app.configuration.schema import WIRE_NAMES
from versions_app.compare.change_summary import summarize_changes, summary_line
from versions_app.compare.diff import diff_lines, line_counts

BLANK = {
    "name": "A",
    "description": "",
    "instructions": "",
    "model": {"provider": "demo", "name": "a"},
    "tools": [],
    "defaultOptions": {},
    "workflows": [],
    "agents": [],
    "integrationTools": [],
    "inputProcessors": [],
    "outputProcessors": [],
    "memory": None,
    "scorers": {},
    "metadata": {},
}


MANY_OPTIONS = [{"options": dict.fromkeys("abcdef", number)} for number in (1, 2)]
ENTERPRISE = {
    "value": {"provider": "demo", "name": "echo"},
    "rules": {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": "pro"}]},
}


def summary(field, before, after):
    return summary_line(summarize_changes({**BLANK, field: before}, {**BLANK, field: after}))


def test_every_field_has_a_label():
    assert list(FIELD_LABELS) == list(WIRE_NAMES.values())


def test_fields_are_in_the_order_of_the_configuration():
    after = {**BLANK, "tools": ["search"], "instructions": "a\nb", "model": {"provider": "demo", "name": "b"}}

    assert summary_line(summarize_changes(BLANK, after)) == "Instructions +2 · Model a → b · Tools +search"


def test_no_change_has_no_summary():
    assert summary_line(summarize_changes(BLANK, dict(BLANK))) == "No differences"


@pytest.mark.parametrize(
    ("field", "before", "after", "words"),
    [
        ("name", "A", "B", "Name A → B"),
        ("name", "A", "x" * 60, f"Name A → {'x' * 39}…"),
        ("name", "A", " \t ", "Name A → empty"),
        ("description", "", "Reads tickets.", "Description added"),
        ("description", "Reads tickets.", "", "Description removed"),
        ("description", "Reads tickets.", "Reads mail.", "Description changed"),
        ("instructions", "a\nb\nc", "a\nB\nB2\nc", "Instructions +2 −1"),
        ("instructions", "a\nb", "a", "Instructions −1"),
        ("model", {"provider": "p", "name": "a"}, {"provider": "q", "name": "a"}, "Model p/a → q/a"),
        (
            "model",
            {"provider": "p", "name": "a", "temperature": 0.2},
            {"provider": "p", "name": "a", "temperature": 0.7},
            "Model temperature 0.2 → 0.7",
        ),
        ("model", {"provider": "p", "name": "a"}, {"provider": "p", "name": "a", "topP": 1}, "Model +topP"),
        ("tools", ["a", "b"], ["b", "c"], "Tools +c −a"),
        ("tools", ["a", "b"], ["b", "a"], "Tools reordered"),
        ("tools", [], ["a", "b", "c", "d", "e"], "Tools +a +b +c +2 more"),
        ("agents", ["x" * 60], [], f"Sub-agents −{'x' * 39}…"),
        ("memory", None, "last-messages", "Memory none → last-messages"),
        ("memory", "a", None, "Memory a → none"),
        ("memory", None, {"options": {}}, "Memory none → options of this agent"),
        ("memory", *MANY_OPTIONS, "Memory options.a, options.b, options.c, 3 more changed"),
        ("conditional", None, {"model": [ENTERPRISE]}, "Variants +Model 1"),
        ("conditional", {"model": [ENTERPRISE]}, {"tools": []}, "Variants −Model 1"),
        (
            "conditional",
            {"tools": [{**ENTERPRISE, "value": ["a"]}]},
            {"tools": [{**ENTERPRISE, "value": ["b"]}]},
            'Variants Tools 1: a, if tier equals "pro" → b, if tier equals "pro"',
        ),
        ("contextKeys", None, ["locale"], "Context keys +locale"),
        ("scorers", {}, {"tone": {}}, "Scorers +tone"),
        (
            "scorers",
            {"tone": {"sampling": {"type": "ratio", "rate": 0.2}}},
            {"tone": {"sampling": {"type": "ratio", "rate": 0.5}}},
            "Scorers tone.sampling.rate 0.2 → 0.5",
        ),
        ("inputProcessors", [{"key": "trim"}], [{"key": "trim"}, {"key": "mask"}], "Input processors +mask"),
        ("inputProcessors", [{"key": "a"}, {"key": "b"}], [{"key": "b"}, {"key": "a"}], "Input processors reordered"),
        ("inputProcessors", [{"key": "a"}], [{"key": "a", "max": 3}], "Input processors changed"),
        ("inputProcessors", [{}, {}], [{}], "Input processors changed"),
        ("metadata", {"a": 1}, {"a": True}, "Metadata a 1 → true"),
        ("metadata", {"a": 1, "b": 1}, {"a": 2, "b": 2}, "Metadata a, b changed"),
        ("metadata", {"a.b": {"c": 1}}, {"a.b": {"c": None}}, "Metadata a.b.c 1 → none"),
        ("metadata", {"a": 1, "b": 2}, {"b": 3, "c": 4}, "Metadata +c −a b 2 → 3"),
        ("metadata", {"a": {}}, {"a": []}, "Metadata a {…} → […]"),
        ("metadata", {"": 1}, {"": 2}, "Metadata empty 1 → 2"),
        ("defaultOptions", {"a": [1, 2]}, {"a": [1]}, "Default options a changed"),
    ],
)
def test_each_kind_of_field_has_its_own_summary(field, before, after, words):
    assert summary(field, before, after) == words


TEXTS = st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=8).map("\n".join)


@given(TEXTS, TEXTS)
def test_counted_lines_equal_the_lines_of_the_comparison(before, after):
    kinds = [line.kind for line in diff_lines(before, after)]

    assert line_counts(before, after) == (kinds.count("added"), kinds.count("removed"))


def test_an_object_with_many_keys_is_read_once():
    before = {f"key {number}": number for number in range(20_000)}
    after = {key: number + 1 for key, number in before.items()}
    looked = 0

    def count(frame, event, argument):
        nonlocal looked
        looked += 1

    sys.setprofile(count)
    try:
        line = summary("metadata", before, after)
    finally:
        sys.setprofile(None)

    assert line == "Metadata key 0, key 1, key 10, 19997 more changed"
    assert looked < 20_000 * 40


MCP_TOOLS = {"office": {"tools": {"add": {"hash": "a" * 64}, "send": {"hash": "b" * 64, "requireApproval": True}}}}


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ({"add": {"hash": "c" * 64}}, "MCP tools new definition of office_add"),
        ({"add": {"hash": "c" * 64}, "send": {"hash": "d" * 64}}, "MCP tools office changed"),
        ({"send": {"hash": "b" * 64}}, "MCP tools office changed"),
    ],
)
def test_a_new_definition_of_an_mcp_tool_is_named_without_its_hash(tools, words):
    after = {"office": {"tools": MCP_TOOLS["office"]["tools"] | tools}}

    assert summary("mcpClients", MCP_TOOLS, after) == words
