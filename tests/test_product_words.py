"""The words of the product: one word for one thing, on pages, in messages and in the documentation."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
APPS = ["agentcms", *(path.name for path in sorted(PROJECT.glob("*_app")))]
PAGE_FOLDERS = {"admin", "display", "forms", "views"}
SEARCH_WORDS = {"agents_app/views/palette.py"}  # its words are found, not shown
PAGE_MODULES = {"admin.py", "forms.py", "views.py"}

# Words that pages and the admin must not use, and the word to use instead. Code and API have other names for some.
PAGE_WORDS = {
    r"\bma[dk]e (?:it |this )?live\b|\bgo(?:es)? live\b": "Publish",
    r"\bactivat(?:e|ed|ing)\b|\breleas(?:e|ed|ing) (?:the|this|v\d)": "Publish",
    r"\bhead(?: version)?\b|\bstanding\b": "Draft",
    r"\btry it\b|\btry both\b|\btest it\b": "Try in playground",
    r"\bactivations?\b|\bmove[sd]? (?:of )?live\b|\bwho moved\b": "Live history",
    r"(?<!change )(?<!current )(?<!new )(?<!\{\{)\bowner\b(?! of)": "Team",
    r"\bidentifier\b|\bAgent id\b": "ID",
    r"\bdraft against\b|\bagainst (?:live|the draft)\b": "Compare",
    r"\bwent back to v|\bgoes back to v|\breverted?\b": "Roll back",
}

# Phrases that nothing may use, each with the phrase to use instead.
PHRASES = {
    r"(?-i:\bTeam of )": "Support team",
    r"\bAdd somebody\b": "Add a member",
    r"\bYou elsewhere\b": "Your other teams",
    r"\bWhat each may do\b": "Roles",
    r"\balso keeps the members\b": "also manages members",
    r"\bWho moved live\b|\blog of who\b": "Live history",
    r"\bwill be made, with exactly\b|\bWhat is there now stays\b": "Creates v7 as an exact copy of v1.",
    r"\bStands beside\b": "Shown with the new version.",
    r"\bWith the next save\b": "Describe this change",
    r"\bMost tokens\b": "Max tokens",
    r"\bAnother one by its id\b": "Add by ID",
    r"\bYours to fill\b": "Custom data (JSON)",
    r"(?-i:\b(?:Before|After) the model\b)": "Input processors / Output processors",
    r"\breads? it as it stands\b|\breads? them as written\b": "Filled in from the request context of each call.",
    r"\btext was kept\b|\bBring it back\b|\bThrow it away\b": "Unsaved changes from 14:02. Restore / Discard",
    r"\bTake theirs\b|\bCopy mine\b": "Use their version / Copy my text",
    r"\bneeds the role (?:viewer|editor|publisher|manager)\b": "needs the Publisher role",
    r"\bLive stays\b": "v3 is still live.",
    r"\bopens nothing\b": "It no longer works.",
    r"\bWhat it is for\b|\bMay act as\b|\bThe same as mine\b": "Name / Role / Same as my role",
    r"\bwhat its users would ask\b": "Type a message",
    r"\bcannot be asked\b|\bkeep a key for it\b": "has no API key",
    r"\bGoes on with the conversation\b|\bBegin a new one\b": "Continuing this conversation / New conversation",
    r"\bwill stand here\b": "The answer appears here.",
    r"\bEnded stop\b|\bWhat it took\b|\bCost nothing\b|\bThe agent as it was\b": "Finish reason / Usage / Cost: $0",
    r"\bgoes live at once\b|\bcould be taken in\b": "will be created and published",
    r"\bwith its whole history\b|\bNothing brings it back\b": "This cannot be undone.",
    r"\bwill do without\b": "and will lose it",
    r"\bHand (?:it |the agent )?over\b|\bnow (?:it )?belongs to\b": "Change owner / Current owner: support",
    r"\bStands in addresses\b": "Used in URLs and the API; cannot be changed.",
    r"\bhas a slip\b|\bmay not see looks the same\b": "the address is wrong, or you have no access.",
    r"\bbelongs to a button\b": "This page cannot be opened directly.",
    r"\bnot yours to (?:open|see)\b": "You do not have access",
    r"\bopen no agents\b|\bNo agents to see\b": "You are not in a team with agents yet.",
    r"\btake me back\b|(?-i:\bLeave it\b)(?! out)": "Cancel",
    r"\bCut to\b|\bits user's role\b|\bRevoked \d+ keys\b|\bForget the stored\b": "Max role · same as user",
    r"\bCheck the history\b|\bfailed jobs again\b": "Verify histories / Retry selected failed jobs",
    r"\bThe same for programs\b": "Machine-readable: OpenAPI 3.1",
    r"\bsays the same to the same\b": "answers identical questions identically",
    r"\bLive moved\b|\blive, but is gone\b": "The live version changed.",
    r"\bgo(?:es|ing)? around (?:a|the|any|no)\b": "bypass a gate",
    r"\bnot \w+ (?:\w+ ){0,4}any more\b": "no longer",
}

VISIBLE_ATTRIBUTES = r'(?:title|text|label|placeholder|aria-label|help|empty|action_label|summary)="([^"]*)"'


def template_text(source: str) -> str:
    """Return what a reader sees of a template: the text between the tags, and the attributes that are read out."""
    source = re.sub(r"\{#.*?#\}", " ", source, flags=re.DOTALL)
    source = re.sub(r"<(script|style)\b.*?</\1>", " ", source, flags=re.DOTALL)
    attributes = re.findall(VISIBLE_ATTRIBUTES, source)
    between = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", "\n", source, flags=re.DOTALL)
    return "\n".join([between, *(re.sub(r"\{[{%].*?[%}]\}", " ", text) for text in attributes)])


def message_strings(source: str) -> Iterator[str]:
    """Yield the strings of a module that are sentences or labels, with `…` for the values in f-strings."""
    tree = ast.parse(source)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    passed = {
        id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and is_documented(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed |= {id(value) for value in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in passed and is_sentence_or_label(node.value):
            yield re.sub(r"\{\{\w+\}\}", "…", node.value)  # a variable


def is_sentence_or_label(value: object) -> bool:
    return isinstance(value, str) and re.search(r"\w \w|^[A-Z][a-z]+$", value) is not None


def is_documented(node: ast.AST) -> bool:
    body = getattr(node, "body", [])
    return bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


@cache
def visible_texts() -> list[tuple[str, str, bool]]:
    """Return every file with the text that people read, and whether that is a page."""
    return [*read_visible_texts()]


def read_visible_texts() -> Iterator[tuple[str, str, bool]]:
    for path in (PROJECT / "templates").rglob("*.html"):
        yield str(path.relative_to(PROJECT)), template_text(path.read_text()), True
    for path in (PROJECT / "static" / "js").rglob("*.js"):
        yield (
            str(path.relative_to(PROJECT)),
            "\n".join(re.findall(r'["`]([^"`\n]* [^"`\n]*)["`]', path.read_text())),
            True,
        )
    for app in APPS:
        for path in (PROJECT / app).rglob("*.py"):
            if "migrations" not in path.parts:
                is_page = "api" not in path.parts and bool({*PAGE_FOLDERS, *PAGE_MODULES} & set(path.parts))
                yield str(path.relative_to(PROJECT)), "\n".join(message_strings(path.read_text())), is_page
    for path in [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md"), *(PROJECT / "clients").rglob("*.md")]:
        yield str(path.relative_to(PROJECT)), path.read_text(), False


def find_words(rules: dict[str, str], text: str) -> list[str]:
    """Return the forbidden words in a text, each with what to write instead."""
    return [
        f"{match.group().strip()!r}, write {instead!r}"
        for pattern, instead in rules.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_pages_messages_and_documentation_use_the_words_of_the_product():
    faults = [f"{place}: {word}" for place, text, _ in visible_texts() for word in find_words(PHRASES, text)]

    assert faults == []


def test_pages_have_one_word_for_one_thing():
    faults = [
        f"{place}: {word}"
        for place, text, is_page in visible_texts()
        if is_page and place not in SEARCH_WORDS
        for word in find_words(PAGE_WORDS, text)
    ]

    assert faults == []


@pytest.mark.parametrize(
    "template",
    [
        '<button type="submit">Make live</button>',
        '<button aria-label="Make v3 live">…</button><p>It goes live.</p>',
        '{% include "components/_button.html" with label="Try it" only %}',
        "<dt>Owner</dt>",
        "<th>{{ name }} Activations</th>",
    ],
)
def test_old_words_in_templates_are_found(template):
    assert find_words(PAGE_WORDS, template_text(template))


@pytest.mark.parametrize(
    "module",
    [
        'messages.success(request, f"{agent.name} now belongs to {team}.")',
        'label = "Most tokens"',
        'def view():\n    """Show it."""\n    return "Team of support"',
    ],
)
def test_old_phrases_in_code_are_found(module):
    assert find_words(PHRASES, "\n".join(message_strings(module)))


def test_markup_and_comments_are_not_read():
    template = '{# the head #}<a class="button-release" href="{% url \'versions:activate\' 1 %}">Publish</a>'

    assert template_text(template).split() == ["Publish"]
    assert [*message_strings('"""Activate the head."""\nname = "owner_id"')] == []
