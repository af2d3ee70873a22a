"""The member `memory` of a request: the thread, the resource, and options that narrow the memory of the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE
from agents_app.configuration.memory.options import parse_memory_options
from agents_app.configuration.memory.values import MAX_LAST_MESSAGES
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues
from memory_app.history.threads import THREAD_KEY_MESSAGE, is_thread_key
from memory_app.realms import RESOURCE_MESSAGE, is_resource_key

MAX_TITLE_LENGTH = 200
MAX_METADATA_KB = 16
MEMORY_NAMES = frozenset({"thread", "resource", "options", "readOnly"})
# The parts of a memory that a call can switch off.
MEMORY_PARTS = ("generateTitle", "semanticRecall", "workingMemory", "observationalMemory")
SWITCHED_PARTS = ("workingMemory", "observationalMemory")  # those with a member `enabled`, in agents and in calls
HISTORY = "messageHistory"
OPTION_NAMES = frozenset({"lastMessages", "readOnly", HISTORY, *MEMORY_PARTS})
NARROWING_MESSAGE = "A call can only narrow the memory of the agent, so this has no effect. Send false, or omit this."
HISTORY_MESSAGE = "A call cannot change the number of tokens, so this has no effect. Send fewer lastMessages."
WIDER_MESSAGE = "A call can only narrow the memory of the agent, which allows {allowed}. This has no effect. Omit it."


class MemoryCall(NamedTuple):
    """The memory of a call, besides the IDs of the thread and the resource.

    `options` narrow the memory of the agent. Title and metadata are those of a thread that the call creates.
    """

    options: JSONMapping = {}
    title: str = ""
    metadata: JSONObject | None = None


def parse_memory_call(body: JSONMapping) -> MemoryCall:
    """Return the options of a call and what a new thread gets. Raise ConfigError with all issues."""
    memory = body.get("memory")
    if not isinstance(memory, dict):
        return MemoryCall()
    issues: list[Issue] = []
    title, metadata, options = "", None, {}
    if isinstance(thread := memory.get("thread"), dict):
        with collecting_issues(issues):
            title, metadata = parse_new_thread(thread)
    with collecting_issues(issues):
        options = parse_narrowing(memory)
    if issues:
        raise ConfigError(issues)
    return MemoryCall(options, title, metadata)


def parse_new_thread(thread: JSONMapping) -> tuple[str, JSONObject | None]:
    """Return title and metadata of a thread."""
    issues = []
    title, metadata = thread.get("title") or "", thread.get("metadata")
    if not isinstance(title, str) or len(title) > MAX_TITLE_LENGTH:
        issues.append(Issue("memory.thread.title", f"This must be a text of at most {MAX_TITLE_LENGTH} characters."))
    if metadata is not None and not isinstance(metadata, dict):
        issues.append(Issue("memory.thread.metadata", NOT_AN_OBJECT_MESSAGE))
    elif len(str(metadata).encode("utf-8", "surrogatepass")) > MAX_METADATA_KB * 1024:
        issues.append(Issue("memory.thread.metadata", f"This must not exceed {MAX_METADATA_KB} KB."))
    if issues:
        raise ConfigError(issues)
    return title, metadata


def parse_narrowing(memory: JSONMapping) -> JSONObject:
    """Return the options that narrow the memory of the agent. Raise ConfigError for those that would widen it."""
    options = {} if memory.get("options") is None else memory["options"]
    if not isinstance(options, dict):
        raise ConfigError([Issue("memory.options", NOT_AN_OBJECT_MESSAGE)])
    issues: list[Issue] = []
    narrowing: JSONObject = {}
    if (flag := read_only_flag(memory, options, issues)) is not None:
        narrowing["readOnly"] = flag
    count = options.get("lastMessages")
    if count is False or (type(count) is int and 0 <= count <= MAX_LAST_MESSAGES):
        narrowing["lastMessages"] = int(count)
    elif count is not None:
        message = f"This must be a whole number from 0 to {MAX_LAST_MESSAGES:,}, or false."
        issues.append(Issue("memory.options.lastMessages", message))
    for name in MEMORY_PARTS:
        if is_switched_off(name, options.get(name)):
            narrowing[name] = False
    if issues:
        raise ConfigError(issues)
    return narrowing


def is_switched_off(name: str, value: object) -> bool:
    """Return whether a call switches a part of the memory off: by false, or as agents do by `{"enabled": false}`."""
    is_disabled = name in SWITCHED_PARTS and isinstance(value, dict) and value.get("enabled") is False
    return value is False or is_disabled  # by ==, 0 is False


def read_only_flag(memory: JSONMapping, options: JSONMapping, issues: list[Issue]) -> bool | None:
    """Return whether a call stores nothing, or None if it does not say. Add an issue for each invalid value."""
    flags = {"memory.readOnly": memory.get("readOnly"), "memory.options.readOnly": options.get("readOnly")}
    given = [flag for flag in flags.values() if flag is not None]
    issues += [
        Issue(path, "This must be true or false.")
        for path, flag in flags.items()
        if flag is not None and not isinstance(flag, bool)  # by ==, 1 is True
    ]
    return True in given if given else None


def find_widening(body: JSONMapping) -> list[UnknownName]:
    """Return the options of a call that have no effect for any agent: they narrow no memory, or are unknown."""
    memory = body.get("memory")
    options = memory.get("options") if isinstance(memory, dict) else None
    if not isinstance(options, dict):
        return []
    given = {name: options[name] for name in MEMORY_PARTS if options.get(name) is not None}
    unused = [(name, NARROWING_MESSAGE) for name, value in given.items() if not is_switched_off(name, value)]
    if options.get(HISTORY) is not None:
        unused.append((HISTORY, HISTORY_MESSAGE))
    path = "memory.options"
    return [
        *find_unknown_names(options, OPTION_NAMES, path),
        *(UnknownName(f"{path}.{name}", name, text) for name, text in unused),
    ]


def find_wider_options(memory: object, narrowing: JSONMapping) -> list[UnknownName]:
    """Return the options of a call that allow more than the memory of an agent, and therefore have no effect."""
    options = parse_memory_options(memory)
    if options is None:
        return []
    allowed = {}
    # After observations, a call limits the messages that the model still gets. The agent's number has no effect then.
    if options.observational is None and narrowing.get("lastMessages", 0) > options.max_messages:
        allowed["lastMessages"] = f"{options.max_messages:,} messages"
    if narrowing.get("readOnly") is False and options.options.read_only:
        allowed["readOnly"] = "reading alone"
    return [
        UnknownName(f"memory.options.{name}", name, WIDER_MESSAGE.format(allowed=text))
        for name, text in allowed.items()
    ]


def parse_memory(body: JSONMapping) -> tuple[str, str]:
    """Return the keys of the thread and the resource.

    An older form has both at the top level. A resource may also be part of the thread. All places must agree: an
    ignored resource could open the conversation of another person.
    """
    memory = {} if body.get("memory") is None else body["memory"]
    if not isinstance(memory, dict):
        raise ConfigError([Issue("memory", NOT_AN_OBJECT_MESSAGE)])
    thread = memory.get("thread")
    if not isinstance(thread, dict):
        thread = {"id": thread}
    issues: list[Issue] = []
    keys = ["", ""]
    with collecting_issues(issues):
        threads = {"memory.thread": thread.get("id"), "threadId": body.get("threadId")}
        keys[0] = parse_same_key(threads, is_thread_key, THREAD_KEY_MESSAGE)
        if isinstance(memory.get("thread"), dict) and not keys[0]:  # nobody would remember this call
            raise ConfigError([Issue("memory.thread.id", "This is required.")])
    with collecting_issues(issues):
        resources = {
            "memory.resource": memory.get("resource"),
            "memory.thread.resourceId": thread.get("resourceId"),
            "resourceId": body.get("resourceId"),
        }
        keys[1] = parse_same_key(resources, is_resource_key, RESOURCE_MESSAGE)
    if issues:
        raise ConfigError(issues)
    return keys[0], keys[1]


def parse_same_key(values: JSONMapping, is_valid: Callable[[object], bool], message: str) -> str:
    """Return the key that a body has at several paths, or a blank text.

    Raise ConfigError with the message for an invalid key, and if two keys differ.
    """
    keys = {path: value for path, value in values.items() if value is not None}
    if invalid := [Issue(path, message) for path, key in keys.items() if not is_valid(key)]:
        raise ConfigError(invalid)
    (first, key), *others = [*keys.items()] or [("", "")]
    for path, other in others:
        if other != key:
            raise ConfigError([Issue(path, f"This differs from {first}. Send only one of them.")])
    return str(key)
