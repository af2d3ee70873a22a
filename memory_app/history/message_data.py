"""Fields of stored messages that are derived from their data, the JSON of a message of pydantic-ai."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping
from memory_app.history.token_estimate import count_tokens

USER, ASSISTANT, TOOL, SIGNAL = "user", "assistant", "tool", "signal"
RESULT_KINDS = ("tool-return", "retry-prompt")


class DerivedFields(NamedTuple):
    """The columns of a message that are derived from its data."""

    role: str
    text: str
    tokens: int


def derive_fields(data: JSONMapping) -> DerivedFields:
    """Return the role, the text and the estimated number of tokens of a message."""
    parts: Sequence[JSONMapping] = data.get("parts") or ()
    if data.get("kind") == "response":
        role, kind = ASSISTANT, "text"
    else:
        role = USER if any(part.get("part_kind") == "user-prompt" for part in parts) else TOOL
        kind = "user-prompt"
    text = "\n".join(_text_of(part.get("content")) for part in parts if part.get("part_kind") == kind)
    return DerivedFields(role, text, sum(map(_tokens_of, parts)))


def _tokens_of(part: JSONMapping) -> int:
    return count_tokens("".join(str(part[name]) for name in ("content", "args", "tool_name") if part.get(name)))


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else []
    return "\n".join(item if isinstance(item, str) else str(item.get("content", "")) for item in items)


def head_numbers(roles: Sequence[str]) -> list[int]:
    """Return for each message, numbered from 0, the number of the first row that the API shows with it.

    An answer with its tool calls and their results is one message of the API.
    """
    heads: list[int] = []
    for index, role in enumerate(roles):
        continues = bool(index) and role != USER and roles[index - 1] != USER
        heads.append(heads[-1] if continues else index)
    return heads
