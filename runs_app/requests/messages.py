"""Validation of the messages that an API client sends, and conversion into the stored form.

Accepted are a text, a message, or a list of both. A message is a model message (`role`, `content`) or a UI message
(`role`, `parts`). The stored form is `{"role": …, "content": [part, …]}` with parts of three types: text, tool-call
(`toolCallId`, `toolName`, `args`) and tool-result (`toolCallId`, `toolName`, `result`, `isError` if it failed). It has
the `id` that the client gave the message, if any.

UI messages are those of the AI SDK. Up to version 4 it had calls as `tool-invocation`, since version 5 as `tool-` and
the name of the tool, or as `dynamic-tool`: https://ai-sdk.dev/docs/reference/ai-sdk-core/ui-message
"""

from __future__ import annotations

from collections.abc import Iterator

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.validation import NOT_A_TEXT_MESSAGE, NOT_AN_OBJECT_MESSAGE, find_json_faults
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues
from memory_app.history.wire_messages import attachment_issues

MessagePart = JSONObject
InputMessage = JSONObject

MESSAGES_PATH = "messages"  # in a body, for issues
MAX_INPUT_MESSAGES = 1000
MAX_ID_LENGTH = 256
MESSAGE_ROLES = ("user", "assistant", "tool")
STEP_START = "step-start"  # a part of UI messages between two requests to the model
# UI messages may contain these. They are not sent to the model.
IGNORED_PART_TYPES = ("reasoning", "redacted-reasoning", "source", "source-url", "source-document")
DATA_PART_PREFIX = "data-"  # data of the page, which is not sent to the model either
UI_CALL_PREFIX = "tool-"
UNFINISHED_STATE = "input-streaming"  # of a call whose arguments are not complete
DENIED_MESSAGE = "Tool execution denied."  # as the AI SDK tells a model of it

SYSTEM_MESSAGE_ERROR = "System messages are not supported. Edit the instructions of the agent instead."
UNSUPPORTED_PART_ERROR = "Only texts, tool calls and tool results are supported, not files or their URLs."


def parse_messages(value: object) -> list[InputMessage]:
    """Return the conversation in the stored form. Raise ConfigError with wire paths."""
    issues = [Issue(*fault) for fault in find_json_faults(value, MESSAGES_PATH)]
    if issues:  # the checks below require valid JSON
        raise ConfigError(issues)
    items = value if isinstance(value, list) else [value]
    if len(items) > MAX_INPUT_MESSAGES:
        raise ConfigError([Issue(MESSAGES_PATH, f"Send at most {MAX_INPUT_MESSAGES:,} messages.")])
    messages: list[InputMessage] = []
    for index, item in enumerate(items):
        with collecting_issues(issues):
            messages += _parse_message(item, f"{MESSAGES_PATH}[{index}]" if isinstance(value, list) else MESSAGES_PATH)
    if issues:
        raise ConfigError(issues)
    _validate_last(messages)
    return messages


def _validate_last(messages: list[InputMessage]) -> None:
    if not messages or messages[-1]["role"] == "assistant":
        raise ConfigError([Issue(MESSAGES_PATH, "The last message must be a message of the user or a tool result.")])
    if messages[-1]["role"] == "user" and not any(part["text"].strip() for part in messages[-1]["content"]):
        raise ConfigError([Issue(MESSAGES_PATH, "The last message is blank. Enter a text.")])


def _parse_message(value: object, path: str) -> Iterator[InputMessage]:
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    if not isinstance(value, dict):
        raise ConfigError([Issue(path, "A message must be a text or an object.")])
    role = value.get("role", "user")
    if role == "system":
        raise ConfigError([Issue(f"{path}.role", SYSTEM_MESSAGE_ERROR)])
    if role not in MESSAGE_ROLES:
        raise ConfigError([Issue(f"{path}.role", f"This must be one of {', '.join(MESSAGE_ROLES)}.")])
    if issues := [*attachment_issues(value, path)]:
        raise ConfigError(issues)
    parts = list(_parse_parts(value, path))
    if role == "user" and any(part["type"] not in ("text", STEP_START) for part in parts):
        raise ConfigError([Issue(path, "A message of the user may only contain texts.")])
    if role == "user" and not parts:
        parts = [{"type": "text", "text": ""}]  # otherwise the message before it would count as the last one
    identity = _parse_identity(value)
    yield from ({**message, **identity} for message in _split_by_role(role, parts))


def _parse_identity(message: JSONMapping) -> dict[str, str]:
    """Return the ID that the client gave to a message, if it can be stored. The thread may have this message."""
    key = message.get("id")
    return {"id": key} if isinstance(key, str) and 0 < len(key) <= MAX_ID_LENGTH else {}


def _split_by_role(role: str, parts: list[MessagePart]) -> Iterator[InputMessage]:
    """Split parts into messages by role. A UI message has the calls, results and texts of several steps in one."""
    own: list[MessagePart] = []
    results: list[MessagePart] = []
    for part in [*parts, None]:
        if results and (part is None or part["type"] in ("text", STEP_START)):
            yield from _message_of("assistant", own)
            yield {"role": "tool", "content": results}
            own, results = [], []
        if part is not None and part["type"] != STEP_START:
            (results if part["type"] == "tool-result" else own).append(part)
    yield from _message_of("user" if role == "user" else "assistant", own)


def _message_of(role: str, parts: list[MessagePart]) -> Iterator[InputMessage]:
    if parts:
        yield {"role": role, "content": parts}


def _parse_parts(message: JSONMapping, path: str) -> Iterator[MessagePart]:
    content, name = message.get("parts"), "parts"
    if content is None or (not content and message.get("content") is not None):  # pages may send both
        content, name = message.get("content"), "content"
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content, name = content["parts"], f"{name}.parts"
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise ConfigError([Issue(f"{path}.{name}", "The content must be a text or a list of parts.")])
    for index, part in enumerate(content):
        yield from _parse_part(part, f"{path}.{name}[{index}]")


def _parse_part(part: JSONValue, path: str) -> Iterator[MessagePart]:
    kind = part.get("type") if isinstance(part, dict) else None
    kind = kind if isinstance(kind, str) else ""
    if kind in IGNORED_PART_TYPES or kind.startswith(DATA_PART_PREFIX):
        return
    if kind == STEP_START:
        yield {"type": STEP_START}
    elif kind == "text":
        yield {"type": "text", "text": _parse_text(part, "text", path)}
    elif kind == "tool-call":
        yield _parse_call(part, path)
    elif kind == "tool-result":
        yield _parse_result(part, path)
    elif kind == "tool-invocation" and isinstance(invocation := part.get("toolInvocation"), dict):
        yield _parse_call(invocation, f"{path}.toolInvocation")
        if invocation.get("state") == "result":
            yield _parse_result(invocation, f"{path}.toolInvocation")
    elif kind == "dynamic-tool" or (kind.startswith(UI_CALL_PREFIX) and kind != "tool-invocation"):
        yield from _parse_ui_call(part, path)
    else:
        raise ConfigError([Issue(path, UNSUPPORTED_PART_ERROR)])


def _parse_ui_call(part: MessagePart, path: str) -> Iterator[MessagePart]:
    """Yield the call of a UI message and its result, if it has one."""
    if part.get("state") == UNFINISHED_STATE:
        return
    if part["type"] != "dynamic-tool":
        part = {**part, "toolName": part["type"].removeprefix(UI_CALL_PREFIX)}
    call = _parse_call(part, path)
    yield call
    if (result := _ui_result(part)) is not None:
        yield {"type": "tool-result", "toolCallId": call["toolCallId"], "toolName": call["toolName"], **result}


def _ui_result(part: MessagePart) -> JSONObject | None:
    """Return the result of a call of a UI message as its state has it, or None if it has none yet."""
    state = part.get("state")
    if state == "output-available":
        return {"result": part.get("output")}
    if state == "output-error":
        return {"result": part.get("errorText"), "isError": True}
    if state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        return {"result": reason or DENIED_MESSAGE, "isError": True}
    return None


def _parse_call(part: MessagePart, path: str) -> MessagePart:
    arguments = part.get("args", part.get("input"))
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        raise ConfigError([Issue(f"{path}.args", NOT_AN_OBJECT_MESSAGE)])
    return {"type": "tool-call", **_parse_call_identity(part, path), "args": arguments}


def _parse_result(part: MessagePart, path: str) -> MessagePart:
    result, failed = part.get("result"), part.get("isError") is True
    output = part.get("output")
    if isinstance(output, dict) and "value" in output:  # {"type": "json" | "text" | "error-text" …, "value": …}
        result, failed = output["value"], str(output.get("type", "")).startswith("error")
    return {
        "type": "tool-result",
        **_parse_call_identity(part, path),
        "result": result,
        **({"isError": True} if failed else {}),
    }


def _parse_call_identity(part: MessagePart, path: str) -> MessagePart:
    identity = {name: _parse_text(part, name, path) for name in ("toolCallId", "toolName")}
    for name, value in identity.items():
        if not value:
            raise ConfigError([Issue(f"{path}.{name}", "This may not be blank.")])
    return identity


def _parse_text(part: MessagePart, name: str, path: str) -> str:
    value = part.get(name)
    if not isinstance(value, str):
        raise ConfigError([Issue(f"{path}.{name}", NOT_A_TEXT_MESSAGE)])
    return value
