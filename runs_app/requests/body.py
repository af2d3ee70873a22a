"""The request body of `generate` and `stream`: messages, options, memory and client tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.names import join_path, to_wire
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE, find_json_faults
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues
from runs_app.requests.memory import MEMORY_NAMES, MemoryCall, find_widening, parse_memory, parse_memory_call
from runs_app.requests.messages import parse_messages
from runs_app.requests.options import CallOptions, ModelOptions, parse_options
from runs_app.requests.request_context import MEMBERS as CONTEXT_MEMBERS
from runs_app.requests.request_context import RequestContext, parse_request_context
from runs_app.requests.schema_shape import argument_schema_issues
from runs_app.requests.structured_output import STRUCTURED_OUTPUT, parse_structured_output
from runs_app.requests.tool_schemas import reject_large_schemas

MAX_CLIENT_TOOLS = 128
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# Members that would change the answer but are not supported. Ignoring them would give a wrong answer.
UNSUPPORTED_MESSAGES = {
    "instructions": "The instructions come from the version of the agent.",
    "system": "The instructions come from the version of the agent.",
    "context": "Send earlier messages as messages.",
    "model": "The model comes from the version of the agent.",
    "output": "Send the schema of the answer as structuredOutput.",
    "toolsets": "Send your own tools as clientTools. Other tools come from the version of the agent.",
    "scorers": "The scorers come from the version of the agent.",
    "versions": "Select a version with the query parameter versionId, versionNumber or status.",
}


class GenerateCall(NamedTuple):
    """A validated body. The messages are validated when the run starts."""

    messages: JSONValue
    options: JSONObject
    client_tools: list[JSONObject]
    thread: str
    resource: str
    memory: MemoryCall
    request_context: RequestContext
    warnings: list[UnknownName]


# Keys that change nothing here, but that the published client sends. Only strict requests refuse those that their
# callers chose.
SENT_BY_CLIENT = frozenset({"runtimeContext", "runId", "threadId", "resourceId"})
WITHOUT_EFFECT = frozenset(
    {
        "format",
        "includeRawChunks",
        "maxProcessorRetries",
        "maxRetries",
        "providerOptions",
        "returnScorerData",
        "savePerStep",
        "stopWhen",
        "telemetry",
        "tracingContext",
        "tracingOptions",
    }
)
WITHOUT_EFFECT_MESSAGE = "This has no effect here. Omit it."
KNOWN_KEYS = frozenset(
    {
        "messages",
        "memory",
        "clientTools",
        "maxIdleMs",
        "untilIdle",
        STRUCTURED_OUTPUT,
        *CONTEXT_MEMBERS,
        *map(to_wire, CallOptions.model_fields),
        *UNSUPPORTED_MESSAGES,
    }
)
KNOWN_NESTED_KEYS = {
    "memory": MEMORY_NAMES,
    "modelSettings": frozenset(map(to_wire, ModelOptions.model_fields)),
}


def find_unknown_in_body(body: JSONMapping) -> list[UnknownName]:
    """Return the keys of a body that nothing reads, except those of the published client."""
    names = [name for name in body if name not in SENT_BY_CLIENT and name not in WITHOUT_EFFECT]
    unknown = find_unknown_names(names, KNOWN_KEYS)
    for path, known in KNOWN_NESTED_KEYS.items():
        nested = body.get(path)
        if isinstance(nested, dict):
            unknown += find_unknown_names((name for name in nested if name not in WITHOUT_EFFECT), known, path)
    return unknown + find_widening(body)


def reject_unknown_in_body(body: JSONMapping) -> None:
    """Raise ConfigError with the path of each key that has no effect."""
    issues = [Issue(name.field, name.message) for name in find_unknown_in_body(body)]
    issues += [Issue(name, WITHOUT_EFFECT_MESSAGE) for name in body if name in WITHOUT_EFFECT]
    if issues:
        raise ConfigError(issues)


def parse_call(body: JSONMapping, *, strict: bool, query_contexts: Sequence[str]) -> GenerateCall:
    """Validate a body. Raise ConfigError with all issues. What has no effect is an issue of strict requests.

    `query_contexts` are the values of the query parameter `requestContext`.
    """
    issues = [Issue(name, f"{text} Omit this.") for name, text in UNSUPPORTED_MESSAGES.items() if body.get(name)]
    if "messages" not in body:
        issues.append(Issue("messages", "This is required."))
    if strict:
        with collecting_issues(issues):
            reject_unknown_in_body(body)
    call = GenerateCall(body.get("messages"), {}, [], "", "", MemoryCall(), {}, [])
    with collecting_issues(issues):
        call = call._replace(options=parse_call_options(body))
    with collecting_issues(issues):
        call = call._replace(client_tools=parse_client_tools(body.get("clientTools")))
    with collecting_issues(issues):
        thread, resource = parse_memory(body)
        call = call._replace(thread=thread, resource=resource, memory=parse_memory_call(body))
    with collecting_issues(issues):
        context = parse_request_context(body, query_contexts, strict=strict)
        call = call._replace(request_context=context.values, warnings=[*find_unknown_in_body(body), *context.warnings])
    # The start of a run validates them. With other issues, the run does not start.
    if issues and "messages" in body:
        with collecting_issues(issues):
            parse_messages(call.messages)
    if issues:
        raise ConfigError(issues)
    return call


def parse_call_options(body: JSONMapping) -> JSONObject:
    """Return the options of a call, including the schema of its answer. Raise ConfigError with all issues."""
    options: JSONObject = {}
    issues: list[Issue] = []
    with collecting_issues(issues):
        options |= parse_options(body)
    with collecting_issues(issues):
        if output := parse_structured_output(body.get(STRUCTURED_OUTPUT)):
            options[STRUCTURED_OUTPUT] = output
    if issues:
        raise ConfigError(issues)
    return options


def parse_client_tools(value: object) -> list[JSONObject]:
    """Return the tools that the API client executes. The body has them by name: `{description?, inputSchema?}`."""
    if value is None:
        return []
    if not isinstance(value, dict) or len(value) > MAX_CLIENT_TOOLS:
        raise ConfigError(
            [Issue("clientTools", f"This must be an object of at most {MAX_CLIENT_TOOLS} tools by name.")]
        )
    issues = [Issue(*fault) for fault in find_json_faults(value, "clientTools")]
    if issues:  # the checks below require valid JSON
        raise ConfigError(issues)
    tools = []
    for name, definition in value.items():
        with collecting_issues(issues):
            tools.append(parse_client_tool(name, definition))
    if issues:
        raise ConfigError(issues)
    reject_large_schemas(tools)
    return tools


def parse_client_tool(name: str, definition: object) -> JSONObject:
    path = join_path("clientTools", name)
    if not TOOL_NAME.fullmatch(name):
        raise ConfigError([Issue(path, "The name of a tool may have at most 64 letters, digits, '_' and '-'.")])
    if not isinstance(definition, dict):
        raise ConfigError([Issue(path, NOT_AN_OBJECT_MESSAGE)])
    member = "inputSchema" if definition.get("inputSchema") else "parameters"
    schema = definition.get(member) or {"type": "object", "properties": {}}
    description = definition.get("description") or ""
    if not isinstance(schema, dict) or not isinstance(description, str):
        raise ConfigError([Issue(path, "The description must be a text and the inputSchema an object.")])
    if issues := [*argument_schema_issues(schema, f"{path}.{member}")]:
        raise ConfigError(issues)
    return {"name": name, "description": description, "schema": schema}
