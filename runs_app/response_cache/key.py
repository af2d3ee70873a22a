"""The key of a cached answer: a hash of everything on which the answer depends, and of who may read it.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from agentcms.wire.canonical import canonical, sha256_hex
from agentcms.wire.json_types import JSONMapping, JSONValue
from runs_app.engine.context import RunDeps
from runs_app.providers.cached_providers import Provider
from runs_app.response_cache.options import CacheOptions

FORMAT = 2  # counts the changes of what is hashed or stored


class NotCacheable(Exception):
    """The request has contents that are not compared, such as files."""


class CacheableRequest(NamedTuple):
    """A request to the model. `step` counts the requests of the run."""

    step: int
    messages: Sequence[ModelMessage]
    settings: JSONMapping | None
    parameters: ModelRequestParameters


def cache_key(deps: RunDeps, options: CacheOptions, model: str, request: CacheableRequest) -> str:
    """Return the key of the answer to a request. Raise NotCacheable if it has none.

    `model` is a `model_identity`. The owner and the user come first, and what a caller chooses is hashed below them,
    so no choice reaches the answers of others.
    """
    parts = [
        FORMAT,
        *readers(deps, options),
        deps.agent_key,
        options.scopes,
        model,
        request.step,
        request.settings or {},
        instructions(request),
        tools_identity(request.parameters),
        ["key", options.key] if options.key else ["messages", messages_identity(request.messages)],
    ]
    # Settings may contain values that are not JSON.
    return sha256_hex(canonical(json.loads(json.dumps(parts, default=repr))))


def readers(deps: RunDeps, options: CacheOptions) -> tuple[str, int | None, int | None]:
    """Return the owner, the user and the resource whose runs may read an answer. No user means all of the owner.

    A service has one user for all its end users, each of whom is a resource.
    """
    if deps.user_id is None:
        raise NotCacheable
    # Agents without an owner are shared by all teams, whose answers stay apart.
    is_shared = options.is_shared and deps.owner_id
    return deps.owner_id, *((None, None) if is_shared else (deps.user_id, deps.resource_id))


def model_identity(provider: Provider, choice: JSONMapping) -> str:
    """Return a hash of a provider, its address and key, and the model with its settings."""
    return sha256_hex(canonical([provider.key, provider.dialect, provider.base_url, provider.secret, dict(choice)]))


def instructions(request: CacheableRequest) -> list[JSONValue]:
    texts = [message.instructions for message in request.messages if isinstance(message, ModelRequest)]
    return [texts[-1:], [part.content for part in request.parameters.instruction_parts or ()]]


def tools_identity(parameters: ModelRequestParameters) -> list[JSONValue]:
    """Return what a model gets about tools and the form of its answer."""
    if parameters.native_tools:
        raise NotCacheable
    output = parameters.output_object
    return [
        [tool_identity(tool) for tool in parameters.function_tools],
        [tool_identity(tool) for tool in parameters.output_tools],
        parameters.output_mode,
        [output.name, output.description, output.json_schema, output.strict] if output else None,
        parameters.allow_text_output,
        parameters.thinking,
    ]


def tool_identity(tool: ToolDefinition) -> list[JSONValue]:
    return [tool.name, tool.description, tool.parameters_json_schema, tool.strict, tool.kind]


def messages_identity(messages: Sequence[ModelMessage]) -> list[list[JSONValue]]:
    """Return the contents of messages without times and IDs. Tool calls are numbered instead."""
    call_numbers: dict[str, int] = {}

    def call_number(call_id: str) -> int:
        return call_numbers.setdefault(call_id, len(call_numbers))

    def part_identity(part: object) -> list[JSONValue]:
        match part:
            case SystemPromptPart() | TextPart() | ThinkingPart():
                return [part.part_kind, part.content]
            case UserPromptPart():
                return [part.part_kind, text_content(part.content)]
            case ToolCallPart():
                return [part.part_kind, part.tool_name, part.args_as_json_str(), call_number(part.tool_call_id)]
            case ToolReturnPart():
                content = part.model_response_str()
                return [part.part_kind, part.tool_name, content, part.outcome, call_number(part.tool_call_id)]
            case RetryPromptPart():
                return [part.part_kind, part.tool_name, part.model_response(), call_number(part.tool_call_id)]
        raise NotCacheable

    return [[message.kind, *map(part_identity, message.parts)] for message in messages]


def text_content(content: Any) -> object:
    """Return the content of a message of a user. Raise NotCacheable for files."""
    if isinstance(content, str) or all(isinstance(item, str) for item in content):
        return content
    raise NotCacheable
