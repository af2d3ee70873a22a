"""The tools and other things that come with the application: small, honest, and useful in a demonstration."""

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

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}
MAX_EXPRESSION_LENGTH = 200


@tool("current-time", title="Current time")
def current_time(time_zone: str = "UTC") -> str:
    """The date and time now in a time zone such as Europe/Berlin."""
    return datetime.now(UTC).astimezone(ZoneInfo(time_zone)).isoformat(timespec="seconds")


@tool(title="Calculator")
def calculator(expression: str) -> float:
    """The value of an arithmetic expression with + - * / % and parentheses."""
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise ValueError(f"An expression has at most {MAX_EXPRESSION_LENGTH} characters.")
    return _evaluate(ast.parse(expression, mode="eval").body)


def _evaluate(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return float(OPERATORS[type(op)](_evaluate(operand)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return float(OPERATORS[type(op)](_evaluate(left), _evaluate(right)))
    raise ValueError("Only numbers, + - * / % and parentheses are understood.")


@tool("word-count", title="Word count")
def word_count(text: str) -> int:
    """How many words a text has."""
    return len(text.split())


@tool("text-search", title="Search in a text")
def text_search(text: str, phrase: str) -> list[str]:
    """The lines of a text that contain a phrase, whatever their case."""
    return [line for line in text.splitlines() if phrase.lower() in line.lower()]


@tool("extract-links", title="Extract links")
def extract_links(text: str) -> list[str]:
    """The web addresses that a text names."""
    return re.findall(r"https?://[^\s<>\"')]+", text)


@tool("send-notice", title="Send a notice", requires_approval=True)
def send_notice(recipient: str, message: str) -> str:
    """A notice to a colleague; a person approves each one before it goes out."""
    return f"Notice for {recipient}: {message}"


@workflow("summarise-thread", title="Summarise a thread")
def summarise_thread(messages: list[str], sentences: int = 3) -> str:
    """The first sentences of a thread's messages, one after another."""
    return " ".join(message.split(". ")[0].rstrip(".") + "." for message in messages[:sentences])


@workflow("triage-ticket", title="Triage a ticket")
def triage_ticket(subject: str, body: str) -> dict[str, str]:
    """A queue and a priority for a support ticket, by plain words in it."""
    text = f"{subject} {body}".lower()
    queue = next((name for name in ("billing", "login", "delivery") if name in text), "general")
    return {"queue": queue, "priority": "high" if "urgent" in text else "normal"}


@workflow("word-frequency", title="Word frequency")
@shared_task
def word_frequency(text: str, most: int = 10) -> dict[str, int]:
    """The words that a text uses most, and how often; a worker counts them, as it would do longer work."""
    return dict(Counter(re.findall(r"\w+", text.lower())).most_common(most))


@scorer("answer-length", title="Answer length")
def answer_length(answer: str, words: int = 120) -> float:
    """1 for an answer of at most so many words, falling towards 0 as it grows."""
    return min(1.0, words / max(len(answer.split()), 1))


@scorer("cites-source", title="Cites a source")
def cites_source(answer: str) -> float:
    """1 where an answer names a web address or a bracketed source."""
    return float(bool(re.search(r"https?://|\[[^\]]+\]", answer)))


@processor("trim-whitespace", title="Trim white space")
def trim_whitespace(text: str) -> str:
    """Removes white space around a message."""
    return text.strip()


@processor("mask-email", title="Mask e-mail addresses")
def mask_email(text: str) -> str:
    """Replaces e-mail addresses in a message by [e-mail]."""
    return re.sub(r"[\w.+-]+@[\w-]+\.[\w.]+", "[e-mail]", text)


for key, title, names in (
    ("demo", "Demo", ("echo", "storyteller")),
    ("openai", "OpenAI", ("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna", "gpt-5.6-luna")),
    ("anthropic", "Anthropic", ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")),
    ("google", "Google", ("gemini-4-argon", "gemini-4-carbon", "gemini-3.8-flash")),
    ("mistral", "Mistral", ("mistral-large-latest", "mistral-medium-latest", "mistral-small-latest")),
):
    registry.add(Entry(Kind.MODEL_PROVIDER, key, title, names=names))


def case_upper(text: str) -> str:
    """A text in capital letters."""
    return text.upper()


def case_lower(text: str) -> str:
    """A text in small letters."""
    return text.lower()


def lines_reverse(text: str) -> str:
    """The lines of a text, last one first."""
    return "\n".join(reversed(text.split("\n")))


registry.add(
    Entry(
        Kind.INTEGRATION_PROVIDER,
        "text",
        "Text",
        "Turns texts into other texts, without a service elsewhere.",
        names=("case_upper", "case_lower", "lines_reverse"),
        target={"case_upper": case_upper, "case_lower": case_lower, "lines_reverse": lines_reverse},
    )
)

code_agent(
    "proofreader",
    name="Proofreader",
    description="Corrects spelling and grammar and changes nothing else.",
    instructions="Correct spelling and grammar. Keep the meaning and the tone. Answer with the text alone.",
    model={"provider": "demo", "name": "echo"},
)
