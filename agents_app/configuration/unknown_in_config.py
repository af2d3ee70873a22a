"""Names in a configuration that nothing reads.

The contents of `model`, `defaultOptions` and processors belong to the caller and are stored unchanged. An app
registers a function for the names that it reads:

    @unknown_name_finder
    def find_unknown_settings(body: Mapping[str, Any]) -> list[UnknownName]: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import BaseModel

from agentcms.wire.json_types import JSONMapping, JSONValue
from agentcms.wire.names import join_path
from agentcms.wire.unknown_names import MAX_UNKNOWN_NAMES, UnknownName, find_unknown_names, wire_names
from agents_app.configuration.background_tasks import BACKGROUND_TASKS, BackgroundTasks, BackgroundToolChoice
from agents_app.configuration.fields.choices import KnowledgeChoice, McpServerChoice, McpToolChoice
from agents_app.configuration.knowledge import KNOWLEDGE
from agents_app.configuration.mcp_clients import MCP_CLIENTS
from agents_app.configuration.memory.options import PART_MODELS, options_without_effect
from agents_app.configuration.references import processor_key, variant_values
from agents_app.configuration.variants import CONDITIONAL
from agents_app.registry import Kind, registry

UnknownNameFinder = Callable[[Mapping[str, Any]], list[UnknownName]]

PROCESSOR_KEYS = ("key", "id")

_functions: list[UnknownNameFinder] = []


def unknown_name_finder(function: UnknownNameFinder) -> UnknownNameFinder:
    """Register a function that returns the unknown names in a configuration, which has wire names."""
    _functions.append(function)
    return function


def find_unknown_in_config(body: JSONMapping) -> list[UnknownName]:
    """Return the unknown names in a configuration or in some of its fields, of any types, and in its variants."""
    unknown = [name for function in _functions for name in function(body)]
    for path, values in variant_values(body.get(CONDITIONAL)):
        # A variant has the value of one field, and the path leads to this value.
        (field,) = values
        inside = [name for function in _functions for name in function(values)]
        unknown += [name._replace(field=path + name.field.removeprefix(field)) for name in inside]
    return unknown


@unknown_name_finder
def find_unknown_arguments(body: JSONMapping) -> list[UnknownName]:
    """Return the first names in processors that are not arguments of their functions."""
    return list(islice(unknown_arguments(body), MAX_UNKNOWN_NAMES))


def unknown_arguments(body: JSONMapping) -> Iterator[UnknownName]:
    for field in ("inputProcessors", "outputProcessors"):
        value = body.get(field)
        for position, choice in enumerate(value if isinstance(value, list) else ()):
            if known := known_arguments(choice):
                yield from find_unknown_names(choice, known, f"{field}[{position}]")


def known_arguments(choice: object) -> tuple[str, ...]:
    """Return the names that a processor reads, or nothing if it is not registered or not valid."""
    key = processor_key(choice) if isinstance(choice, dict) else None
    entry = registry.get(Kind.PROCESSOR, key) if isinstance(key, str) else None
    return () if entry is None else (*PROCESSOR_KEYS, *entry.argument_names)


@unknown_name_finder
def find_unknown_memory_options(body: JSONMapping) -> list[UnknownName]:
    """Return the names in a memory that nothing reads, and the options that have no effect."""
    unknown: list[UnknownName] = []
    for path, model in PART_MODELS.items():
        part: JSONValue = body.get("memory")
        for name in filter(None, path.split(".")):
            part = part.get(name) if isinstance(part, dict) else None
        if isinstance(part, dict):
            known = {str(info.alias) for info in model.model_fields.values()}
            unknown += find_unknown_names(part, known, join_path("memory", path) if path else "memory")
    without_effect = [
        UnknownName(f"memory.{path}", path.rpartition(".")[2], message)
        for path, message in options_without_effect(body.get("memory"))
    ]
    # Once: an option at the wrong place is unknown there, and its explanation says where it belongs.
    explained = {name.field for name in without_effect}
    return [*(name for name in unknown if name.field not in explained), *without_effect]


@unknown_name_finder
def find_unknown_choices(body: JSONMapping) -> list[UnknownName]:
    """Return the first names in the choices of background tasks, knowledge bases and MCP tools that nothing reads.

    With a misspelt `filter` an agent finds everything, and with a misspelt `requireApproval` nobody is asked.
    """
    return list(islice(unknown_choices(body), MAX_UNKNOWN_NAMES))


def unknown_choices(body: JSONMapping) -> Iterator[UnknownName]:
    tasks, servers = as_object(body.get(BACKGROUND_TASKS)), as_object(body.get(MCP_CLIENTS))
    yield from find_unknown_names(tasks, wire_names(BackgroundTasks), BACKGROUND_TASKS)
    yield from unknown_in_values(BackgroundToolChoice, tasks.get("tools"), f"{BACKGROUND_TASKS}.tools")
    yield from unknown_in_values(KnowledgeChoice, body.get(KNOWLEDGE), KNOWLEDGE)
    yield from unknown_in_values(McpServerChoice, servers, MCP_CLIENTS)
    for key, server in servers.items():
        tools = as_object(server).get("tools")
        yield from unknown_in_values(McpToolChoice, tools, f"{join_path(MCP_CLIENTS, key)}.tools")


def unknown_in_values(model: type[BaseModel], value: JSONValue, path: str) -> Iterator[UnknownName]:
    """Yield the unknown names in the values of an object, which have the shape of a model."""
    for key, choice in as_object(value).items():
        yield from find_unknown_names(as_object(choice), wire_names(model), join_path(path, key))


def as_object(value: JSONValue) -> JSONMapping:
    return value if isinstance(value, dict) else {}
