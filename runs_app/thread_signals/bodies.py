"""The bodies of the routes that send signals and messages to threads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE, find_json_faults
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues
from memory_app.history.signal_markup import NAME_MESSAGE, Signal, is_name, validate_signal
from memory_app.history.wire_messages import MAX_MESSAGE_KB
from runs_app.requests.body import (
    UNSUPPORTED_MESSAGES,
    find_unknown_in_body,
    parse_call_options,
    parse_client_tools,
)
from runs_app.requests.memory import MAX_METADATA_KB
from runs_app.requests.request_context import parse_request_context
from runs_app.thread_signals.sending import IfActive, IfIdle

MAX_SIGNAL_ID_LENGTH = 256
CONTENTS_MESSAGE = "This must be a text or a list of text parts. Leave out files."

TARGET_NAMES = ("threadId", "resourceId", "runId", "ifActive", "ifIdle")
# What the published client sends with every signal.
SENT_WITH_SIGNALS = frozenset({"createdAt", "acceptedAt"})
SIGNAL_NAMES = frozenset({"type", "tagName", "contents", "id", "attributes", "metadata"}) | SENT_WITH_SIGNALS
STREAM_OPTIONS = "streamOptions"  # of a run that a signal wakes
STREAM_OPTIONS_PATH = f"ifIdle.{STREAM_OPTIONS}"
SITUATION_NAMES = {
    "ifActive": frozenset({"behavior", "attributes"}),
    "ifIdle": frozenset({"behavior", "attributes", STREAM_OPTIONS}),
}

Behavior = TypeVar("Behavior", IfActive, IfIdle)


class SignalCall(NamedTuple):
    """A validated body: the signal, where it goes and what becomes of it."""

    signal: Signal
    if_active: IfActive
    if_idle: IfIdle
    active_attributes: JSONObject
    idle_attributes: JSONObject
    options: JSONObject  # of a run that the signal wakes


def parse_signal_body(body: JSONMapping, query_contexts: Sequence[str] = ()) -> SignalCall:
    """Validate the body of `signals`. Raise ConfigError with all issues."""
    return _parse(body, body.get("signal"), "signal", query_contexts)


def parse_message_body(body: JSONMapping, query_contexts: Sequence[str] = ()) -> SignalCall:
    """Validate the body of `send-message` or `queue-message`. Raise ConfigError with all issues."""
    message = body.get("message")
    if isinstance(message, str | list):
        message = {"contents": message}
    if isinstance(message, dict):
        # Whatever the body says: what comes by these routes is the words of a person.
        message = {**message, "type": "user", "tagName": None}
    return _parse(body, message, "message", query_contexts)


def find_unknown_in_signal(body: JSONMapping) -> list[UnknownName]:
    """Return the unknown names in the objects of a body: the signal, and what becomes of it."""
    known = {"signal": SIGNAL_NAMES, "message": SIGNAL_NAMES, **SITUATION_NAMES}
    objects = {path: value for path in known if isinstance(value := body.get(path), dict)}
    unknown = [name for path, value in objects.items() for name in find_unknown_names(value, known[path], path)]
    options = objects.get("ifIdle", {}).get(STREAM_OPTIONS)
    in_options = find_unknown_in_body(options) if isinstance(options, dict) else []
    return unknown + [name._replace(field=f"{STREAM_OPTIONS_PATH}.{name.field}") for name in in_options]


def _parse(body: JSONMapping, value: JSONValue, path: str, query_contexts: Sequence[str]) -> SignalCall:
    issues: list[Issue] = []
    signal = Signal("user", "")  # in place of an invalid one, so that all other issues are found too
    with collecting_issues(issues):
        signal = parse_signal(value, path)
    active, idle = (_member(body, name, issues) for name in ("ifActive", "ifIdle"))
    if_active, if_idle = IfActive.DELIVER, IfIdle.WAKE
    with collecting_issues(issues):
        if_active = _behavior(active, "ifActive", IfActive, IfActive.DELIVER)
    with collecting_issues(issues):
        if_idle = _behavior(idle, "ifIdle", IfIdle, IfIdle.WAKE)
    active_attributes = _attributes(active, "ifActive", issues)
    idle_attributes = _attributes(idle, "ifIdle", issues)
    issues += _size_issues(signal, {"ifActive": active_attributes, "ifIdle": idle_attributes})
    options: JSONObject = {}
    with collecting_issues(issues):
        options = parse_stream_options(idle.get(STREAM_OPTIONS), query_contexts)
    if issues:
        raise ConfigError(issues)
    return SignalCall(signal, if_active, if_idle, active_attributes, idle_attributes, options)


def parse_signal(value: JSONValue, path: str) -> Signal:
    """Return a signal. Raise ConfigError with all issues."""
    if not isinstance(value, dict):
        raise ConfigError([Issue(path, "This is required. Send an object.")])
    if faults := [Issue(*fault) for fault in find_json_faults(value, path)]:
        raise ConfigError(faults)
    issues: list[Issue] = []
    contents = parse_contents(value.get("contents"), f"{path}.contents", issues)
    attributes = _attributes(value, path, issues)
    metadata = value.get("metadata")
    issues += _name_issues(value, path)
    if not (metadata is None or isinstance(metadata, dict)):
        issues.append(Issue(f"{path}.metadata", NOT_AN_OBJECT_MESSAGE))
    elif len(json.dumps(metadata, ensure_ascii=False).encode()) > MAX_METADATA_KB * 1024:
        issues.append(Issue(f"{path}.metadata", f"This must not exceed {MAX_METADATA_KB} KB."))
    if _is_too_long(contents, attributes):
        issues.append(Issue(path, f"A signal must not exceed {MAX_MESSAGE_KB} KB. Send a shorter one."))
    if issues:
        raise ConfigError(issues)
    signal = Signal(value["type"], contents, value.get("id") or "", attributes, metadata, value.get("tagName") or "")
    validate_signal(signal, path)
    if not signal.contents.strip() and signal.is_from_user:
        raise ConfigError([Issue(f"{path}.contents", "The message is empty. Send a text.")])
    return signal


def _name_issues(value: JSONMapping, path: str) -> Iterator[Issue]:
    key = value.get("id")
    if not (key is None or (isinstance(key, str) and len(key) <= MAX_SIGNAL_ID_LENGTH)):
        yield Issue(f"{path}.id", f"This must be a text of at most {MAX_SIGNAL_ID_LENGTH} characters.")
    for name in ("type", "tagName"):
        text = value.get(name)
        is_optional = name == "tagName" and text in (None, "")
        if not is_optional and not (isinstance(text, str) and is_name(text)):
            yield Issue(f"{path}.{name}", NAME_MESSAGE)


def parse_contents(value: JSONValue, path: str, issues: list[Issue]) -> str:
    """Return a text, or the text of a list of text parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        issues.append(Issue(path, CONTENTS_MESSAGE))
        return ""
    texts: list[str] = []
    for index, part in enumerate(value):
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            issues.append(Issue(f"{path}[{index}]", CONTENTS_MESSAGE))
    return "\n".join(texts)


def parse_stream_options(value: JSONValue, query_contexts: Sequence[str]) -> JSONObject:
    """Return the options of a run that a signal wakes. The thread and the resource in them change nothing."""
    options = {} if value is None else value
    if not isinstance(options, dict):
        raise ConfigError([Issue(STREAM_OPTIONS_PATH, NOT_AN_OBJECT_MESSAGE)])
    issues = [Issue(name, f"{text} Omit this.") for name, text in UNSUPPORTED_MESSAGES.items() if options.get(name)]
    parsed: JSONObject = {}
    with collecting_issues(issues):
        parsed["options"] = parse_call_options(options)
    with collecting_issues(issues):
        parsed["clientTools"] = parse_client_tools(options.get("clientTools"))
    with collecting_issues(issues):
        parsed["requestContext"] = parse_request_context(options, query_contexts).values
    if issues:
        raise ConfigError([Issue(f"{STREAM_OPTIONS_PATH}.{issue.field}", issue.message) for issue in issues])
    return parsed


def _member(body: JSONMapping, name: str, issues: list[Issue]) -> JSONObject:
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value or {}
    issues.append(Issue(name, NOT_AN_OBJECT_MESSAGE))
    return {}


def _attributes(value: JSONMapping, path: str, issues: list[Issue]) -> JSONObject:
    attributes = value.get("attributes")
    if attributes is None:
        return {}
    if not isinstance(attributes, dict):
        issues.append(Issue(f"{path}.attributes", NOT_AN_OBJECT_MESSAGE))
        return {}
    with collecting_issues(issues):
        validate_signal(Signal("user", "", attributes=attributes), path)
    return attributes


def _size_issues(signal: Signal, added: Mapping[str, JSONMapping]) -> Iterator[Issue]:
    """Yield an issue for each situation whose attributes make the signal too long."""
    for path, attributes in added.items():
        if attributes and _is_too_long(signal.contents, {**signal.attributes, **attributes}):
            message = f"With these, the signal exceeds {MAX_MESSAGE_KB} KB. Send shorter ones."
            yield Issue(f"{path}.attributes", message)


def _is_too_long(contents: str, attributes: JSONMapping) -> bool:
    return len(json.dumps([contents, attributes], ensure_ascii=False).encode()) > MAX_MESSAGE_KB * 1024


def _behavior(value: JSONMapping, path: str, kind: type[Behavior], default: Behavior) -> Behavior:
    behavior = value.get("behavior")
    # `queue` has a route of its own.
    names = [item.value for item in kind if item.value != "queue"]
    if behavior is None:
        return default
    if behavior not in names:
        raise ConfigError([Issue(f"{path}.behavior", f"This must be one of {', '.join(names)}.")])
    return kind(behavior)
