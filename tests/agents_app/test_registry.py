"""The registry of tools, agents, memories and other entries."""

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentcms.server.processes import PROJECT
from agents_app.configuration.schema import ConfigError
from agents_app.registry import Entry, Kind, code_agent, processor, registry, scorer, tool, workflow

MODEL = {"provider": "demo", "name": "echo"}


def greet(guest: str, times: int = 1) -> str:
    """Greets a guest by name."""
    return f"Hello {guest}! " * times


@pytest.mark.parametrize(
    ("decorator", "kind"),
    [(tool, Kind.TOOL), (workflow, Kind.WORKFLOW), (scorer, Kind.SCORER), (processor, Kind.PROCESSOR)],
)
def test_key_title_and_description_come_from_the_function(decorator, kind):
    assert decorator()(greet) is greet

    entry = registry.get(kind, "greet")
    assert (entry.title, entry.description, entry.target) == ("Greet", "Greets a guest by name.", greet)
    assert entry.schema["required"] == ["guest"]
    assert entry.schema["properties"]["times"] == {"default": 1, "title": "Times", "type": "integer"}


def test_explicit_options_take_precedence():
    tool("hello", title="Say hello", description="To a guest.", requires_approval=True)(greet)

    entry = registry.get(Kind.TOOL, "hello")
    assert (entry.title, entry.description, entry.requires_approval) == ("Say hello", "To a guest.", True)


def test_underscores_become_hyphens_in_the_key():
    @tool()
    def say_goodbye() -> str:
        return "Goodbye!"

    assert registry.get(Kind.TOOL, "say-goodbye").title == "Say goodbye"


def test_a_misspelt_rule_of_approvals_is_an_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'require_approval'"):
        tool("refund", require_approval=True)


@pytest.mark.parametrize("decorator", [tool, workflow, scorer, processor])
def test_a_decorator_without_parentheses_is_an_error(decorator):
    with pytest.raises(TypeError, match="The decorator of greet needs parentheses"):
        decorator(greet)


def test_an_entry_is_found_by_key_or_id():
    tool("hello", id="greeting")(greet)
    registry.add(Entry(Kind.TOOL, "greeting-card", "Card", id="hello"))

    assert registry.get(Kind.TOOL, "greeting").key == registry.get(Kind.TOOL, "hello").key == "hello"
    assert registry.get(Kind.TOOL, "") is None
    assert registry.get(Kind.WORKFLOW, "hello") is None


def test_keys_are_unique_per_kind():
    tool("hello")(greet)
    tool("hello")(greet)  # as when a module is imported twice

    with pytest.raises(ImproperlyConfigured, match="The key 'hello' is registered twice as tool"):
        tool("hello", title="Another")(greet)

    workflow("hello")(greet)


def test_an_agent_in_code_has_a_validated_configuration():
    entry = code_agent("porter", name="Porter", description="At the door.", instructions="Open.", model=MODEL)

    assert (entry.title, entry.description, entry.source) == ("Porter", "At the door.", "code")
    assert (entry.target["model"], entry.target["tools"]) == (MODEL, [])
    with pytest.raises(ConfigError, match="This is required"):
        code_agent("nobody", name="Nobody")


PROJECT_SETTINGS = "from agentcms.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'greetings']\n"
AGENT_TOOLS = "from agents_app.registry import tool\n\n\n@tool()\ndef greet() -> str:\n    return 'Hello!'\n"
LOOK = (
    "import django; django.setup(); from agents_app.registry import *; print(registry.get(Kind.TOOL, 'greet').title)"
)


def test_agent_tools_of_any_installed_app_are_found_at_start(tmp_path):
    (tmp_path / "greetings").mkdir()
    (tmp_path / "greetings" / "__init__.py").touch()
    (tmp_path / "greetings" / "agent_tools.py").write_text(AGENT_TOOLS)
    (tmp_path / "project_settings.py").write_text(PROJECT_SETTINGS)
    own = {"DJANGO_SETTINGS_MODULE": "project_settings", "DATA_DIR": str(tmp_path / "var")}
    environment = {**os.environ, **own, "PYTHONPATH": f"{tmp_path}:{PROJECT}"}

    done = subprocess.run([sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, timeout=60)

    assert done.stdout == "Greet\n", done.stderr


# These come from what people add.
STAFF_KINDS = (Kind.MCP_TOOL, Kind.KNOWLEDGE, Kind.ACP_AGENT)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in STAFF_KINDS])
def test_every_kind_has_built_in_entries(kind):
    entries = registry.entries(kind)

    assert entries
    assert all(entry.title and entry.source == "code" for entry in entries)


@pytest.mark.parametrize("kind", [Kind.TOOL, Kind.WORKFLOW, Kind.SCORER, Kind.PROCESSOR])
def test_callable_entries_have_a_description_and_a_schema(kind):
    for entry in registry.entries(kind):
        assert entry.description.endswith("."), entry.key
        assert entry.schema["properties"], entry.key


@pytest.mark.parametrize(
    ("kind", "key", "taken", "given"),
    [
        (Kind.TOOL, "calculator", {"expression": "-2 + 3 * (4 - 1) % 5"}, 2.0),
        (Kind.TOOL, "word-count", {"text": "one  two\nthree"}, 3),
        (Kind.TOOL, "text-search", {"text": "Bread\nButter\nbreads", "phrase": "BREAD"}, ["Bread", "breads"]),
        (Kind.TOOL, "extract-links", {"text": "See <https://a.example/b>."}, ["https://a.example/b"]),
        (Kind.WORKFLOW, "summarise-thread", {"messages": ["One. Two.", "Three"], "sentences": 2}, "One. Three."),
        (Kind.WORKFLOW, "triage-ticket", {"subject": "Urgent", "body": "x"}, {"queue": "general", "priority": "high"}),
        (Kind.WORKFLOW, "word-frequency", {"text": "a b A", "most": 1}, {"a": 2}),
        (Kind.SCORER, "answer-length", {"answer": "one two", "words": 1}, 0.5),
        (Kind.SCORER, "cites-source", {"answer": "As in [2]."}, 1.0),
        (Kind.PROCESSOR, "trim-whitespace", {"text": " a \n"}, "a"),
        (Kind.PROCESSOR, "mask-email", {"text": "Ask ada.l@mail.example now"}, "Ask [e-mail] now"),
    ],
)  # fmt: skip
def test_the_demo_entries_work(kind, key, taken, given):
    assert registry.get(kind, key).target(**taken) == given


def test_current_time_takes_a_time_zone():
    result = registry.get(Kind.TOOL, "current-time").target("Asia/Kolkata")

    assert result.endswith("+05:30")


@pytest.mark.parametrize("expression", ["2 ** 9", "__import__('os')", "a", "[1]", "1" * 201])
def test_the_calculator_refuses_other_expressions(expression):
    with pytest.raises(ValueError):
        registry.get(Kind.TOOL, "calculator").target(expression)
