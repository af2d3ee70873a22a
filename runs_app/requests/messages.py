"""The messages that a caller sends: whichever of the usual forms they come in, checked and brought into one.

A text, a list of texts and messages, or one message. A message is a model message (`role`, `content`) or one of a page
(`role`, `parts`). What is kept is `{"role": …, "content": [part, …]}` with parts of three types: text, tool-call
(`toolCallId`, `toolName`, `args`) and tool-result (`toolCallId`, `toolName`, `result`, `isError` where it failed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentcms.wire.validation import find_faults
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues

Part = dict[str, Any]
Message = dict[str, Any]

MOST_MESSAGES = 1000
ROLES = ("user", "assistant", "tool")
# What pages keep beside what was said; the model is told none of it.
UNTOLD = ("reasoning", "step-start", "redacted-reasoning")

SYSTEM = "A system message cannot be sent. What the agent is told to be stands in its instructions."
NO_FILES = "Only texts, tool calls and their results can be sent: no files, and no addresses of files."


def read_messages(value: Any, path: str = "messages") -> list[Message]:
    """The conversation so far, the message to answer last. Raises ShapeError with wire paths."""
    issues = [Issue(*fault) for fault in find_faults(value, path)]
    if issues:  # such values may break the checks that follow
        raise ConfigError(issues)
    given = value if isinstance(value, list) else [value]
    if len(given) > MOST_MESSAGES:
        raise ConfigError([Issue(path, f"Send at most {MOST_MESSAGES:,} messages.")])
    messages: list[Message] = []
    for index, each in enumerate(given):
        with collecting_issues(issues):
            messages += _read(each, f"{path}[{index}]" if isinstance(value, list) else path)
    if issues:
        raise ConfigError(issues)
    if not messages or messages[-1]["role"] == "assistant":
        raise ConfigError([Issue(path, "The last message must be one to answer: a user's, or the result of a tool.")])
    if messages[-1]["role"] == "user" and not any(part["text"].strip() for part in messages[-1]["content"]):
        raise ConfigError([Issue(path, "The message to answer is blank. Say something.")])
    return messages


def _read(value: Any, path: str) -> Iterator[Message]:
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    if not isinstance(value, dict):
        raise ConfigError([Issue(path, "A message is a text or an object.")])
    role = value.get("role", "user")
    if role == "system":
        raise ConfigError([Issue(f"{path}.role", SYSTEM)])
    if role not in ROLES:
        raise ConfigError([Issue(f"{path}.role", f"Give one of {', '.join(ROLES)}.")])
    parts = list(_parts(value, path))
    if role == "user" and any(part["type"] != "text" for part in parts):
        raise ConfigError([Issue(path, "A user's message has texts alone.")])
    yield from _arranged(role, parts)


def _arranged(role: str, parts: list[Part]) -> Iterator[Message]:
    """The parts under the roles that say them: a page keeps calls, their results and what followed in one message."""
    said: list[Part] = []
    results: list[Part] = []
    for part in [*parts, None]:
        if results and (part is None or part["type"] == "text"):
            yield from _turn("assistant", said)
            yield {"role": "tool", "content": results}
            said, results = [], []
        if part is not None:
            (results if part["type"] == "tool-result" else said).append(part)
    yield from _turn("user" if role == "user" else "assistant", said)


def _turn(role: str, said: list[Part]) -> Iterator[Message]:
    if said:
        yield {"role": role, "content": said}


def _parts(message: Mapping[str, Any], path: str) -> Iterator[Part]:
    content = message.get("parts") or message.get("content")
    name = "parts" if message.get("parts") else "content"
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content, name = content["parts"], f"{name}.parts"
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise ConfigError([Issue(f"{path}.{name}", "The content is a text or a list of parts.")])
    for index, part in enumerate(content):
        yield from _part(part, f"{path}.{name}[{index}]")


def _part(part: Any, path: str) -> Iterator[Part]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in UNTOLD:
        return
    if kind == "text":
        yield {"type": "text", "text": _text(part, "text", path)}
    elif kind == "tool-call":
        yield _call(part, path)
    elif kind == "tool-result":
        yield _result(part, path)
    elif kind == "tool-invocation" and isinstance(invocation := part.get("toolInvocation"), dict):
        yield _call(invocation, f"{path}.toolInvocation")
        if invocation.get("state") == "result":
            yield _result(invocation, f"{path}.toolInvocation")
    else:
        raise ConfigError([Issue(path, NO_FILES)])


def _call(part: Part, path: str) -> Part:
    arguments = part.get("args", part.get("input"))
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        raise ConfigError([Issue(f"{path}.args", "This must be an object.")])
    return {"type": "tool-call", **_named(part, path), "args": arguments}


def _result(part: Part, path: str) -> Part:
    result, failed = part.get("result"), part.get("isError") is True
    output = part.get("output")
    if isinstance(output, dict) and "value" in output:  # {"type": "json" | "text" | "error-text" …, "value": …}
        result, failed = output["value"], str(output.get("type", "")).startswith("error")
    return {"type": "tool-result", **_named(part, path), "result": result, **({"isError": True} if failed else {})}


def _named(part: Part, path: str) -> Part:
    named = {name: _text(part, name, path) for name in ("toolCallId", "toolName")}
    for name, value in named.items():
        if not value:
            raise ConfigError([Issue(f"{path}.{name}", "This may not be blank.")])
    return named


def _text(part: Part, name: str, path: str) -> str:
    value = part.get(name)
    if not isinstance(value, str):
        raise ConfigError([Issue(f"{path}.{name}", "This must be a text.")])
    return value
