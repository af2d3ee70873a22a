"""The tools, workflows, scorers and other entries that come with the application."""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from celery import shared_task

from agents_app.registry import Entry, Kind, code_agent, processor, registry, scorer, tool, workflow

# Without powers: 9**9**9 would take all memory.
ARITHMETIC_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}
# So that the tree of an expression is not too deep for the recursion of Python.
MAX_EXPRESSION_LENGTH = 200

# A run of characters before the "@" is matched once, with or without an address. A pattern that requires the "@"
# would search the rest of a long word again from each of its letters.
_WORD_OR_EMAIL = re.compile(r"[\w.+-]+(@[\w-]+\.[\w.]+)?")


@tool("current-time", title="Current time")
def current_time(time_zone: str = "UTC") -> str:
    """Return the current date and time in a time zone such as Europe/Berlin."""
    try:
        zone = ZoneInfo(time_zone)
    except (KeyError, ValueError, OSError):  # unknown, not a relative path, or too long for a file name
        raise ValueError(f"Unknown time zone '{time_zone[:100]}'. Use a name such as Europe/Berlin.") from None
    return datetime.now(UTC).astimezone(zone).isoformat(timespec="seconds")


@tool(title="Calculator")
def calculator(expression: str) -> float:
    """Calculate an arithmetic expression with + - * / % and parentheses."""
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise ValueError(f"An expression has at most {MAX_EXPRESSION_LENGTH} characters.")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError("This is not an arithmetic expression. Write one such as 2 * (3 + 4).") from None
    return _evaluate(tree.body)


def _evaluate(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in ARITHMETIC_OPERATORS:
            return float(ARITHMETIC_OPERATORS[type(op)](_evaluate(operand)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC_OPERATORS:
            return float(ARITHMETIC_OPERATORS[type(op)](_evaluate(left), _evaluate(right)))
    raise ValueError("Use only numbers, + - * / % and parentheses.")


@tool("word-count", title="Word count")
def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


@tool("text-search", title="Search in a text")
def text_search(text: str, phrase: str) -> list[str]:
    """Return the lines of a text that contain a phrase, ignoring case."""
    lowered = phrase.lower()
    return [line for line in text.splitlines() if lowered in line.lower()]


@tool("extract-links", title="Extract links")
def extract_links(text: str) -> list[str]:
    """Return the URLs in a text."""
    return re.findall(r"https?://[^\s<>\"')]+", text)


@tool("send-notice", title="Send a notice", requires_approval=True)
def send_notice(recipient: str, message: str) -> str:
    """Send a notice to a colleague. A person approves each notice first."""
    return f"Notice for {recipient}: {message}"


@workflow("summarise-thread", title="Summarise a thread")
def summarise_thread(messages: list[str], sentences: int = 3) -> str:
    """Join the first sentences of the messages of a thread."""
    return " ".join(message.split(". ")[0].rstrip(".") + "." for message in messages[:sentences])


@workflow("triage-ticket", title="Triage a ticket")
def triage_ticket(subject: str, body: str) -> dict[str, str]:
    """Choose the queue and the priority of a support ticket by keywords."""
    text = f"{subject} {body}".lower()
    queue = next((name for name in ("billing", "login", "delivery") if name in text), "general")
    return {"queue": queue, "priority": "high" if "urgent" in text else "normal"}


@workflow("word-frequency", title="Word frequency")
@shared_task
def word_frequency(text: str, most: int = 10) -> dict[str, int]:
    """Count the most frequent words of a text in a background worker."""
    return dict(Counter(re.findall(r"\w+", text.lower())).most_common(most))


@scorer(
    "answer-length",
    title="Answer length",
    description="1 for an answer of at most 120 words, and less the longer it is.",
)
def answer_length(answer: str, words: int = 120) -> float:
    """Return 1 for an answer up to a number of words, and less the longer it is."""
    return min(1.0, words / max(len(answer.split()), 1))


@scorer(
    "cites-source",
    title="Cites a source",
    description="1 for an answer with a URL or a source in brackets, else 0.",
)
def cites_source(answer: str) -> float:
    """Return 1 if an answer contains a URL or a source in brackets, else 0."""
    return float(bool(re.search(r"https?://|\[[^\[\]]+\]", answer)))


@processor("trim-whitespace", title="Trim white space")
def trim_whitespace(text: str) -> str:
    """Remove white space around a message."""
    return text.strip()


@processor("mask-email", title="Mask e-mail addresses", tool_results=True)
def mask_email(text: str) -> str:
    """Replace e-mail addresses in messages and in results of tools by [e-mail]."""
    return _WORD_OR_EMAIL.sub(lambda match: "[e-mail]" if match[1] else match[0], text)


for key, title, names in (
    ("demo", "Demo", ("echo", "storyteller")),
    ("openai", "OpenAI", ("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna", "gpt-5.6-luna")),
    ("anthropic", "Anthropic", ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")),
    ("google", "Google", ("gemini-4-argon", "gemini-4-carbon", "gemini-3.8-flash")),
    ("mistral", "Mistral", ("mistral-large-latest", "mistral-medium-latest", "mistral-small-latest")),
):
    registry.add(Entry(Kind.MODEL_PROVIDER, key, title, names=names))


def case_upper(text: str) -> str:
    """Convert a text to upper case."""
    return text.upper()


def case_lower(text: str) -> str:
    """Convert a text to lower case."""
    return text.lower()


def lines_reverse(text: str) -> str:
    """Reverse the order of the lines of a text."""
    return "\n".join(reversed(text.split("\n")))


registry.add(
    Entry(
        Kind.INTEGRATION_PROVIDER,
        "text",
        "Text",
        "Transform texts without an external service.",
        names=("case_upper", "case_lower", "lines_reverse"),
        target={"case_upper": case_upper, "case_lower": case_lower, "lines_reverse": lines_reverse},
    )
)

code_agent(
    "proofreader",
    name="Proofreader",
    description="Corrects spelling and grammar only.",
    instructions="Correct spelling and grammar. Keep the meaning and the tone. Answer with the text alone.",
    model={"provider": "demo", "name": "echo"},
)
