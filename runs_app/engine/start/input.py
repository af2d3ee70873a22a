"""The input of a run: messages, options, client tools, request context and instructions."""

from __future__ import annotations

import json
from types import MappingProxyType

from django.conf import settings

from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.configuration.variants import known_values
from memory_app.history.messages import known_message_keys
from memory_app.models import Thread
from runs_app.building.instructions import fill_instructions
from runs_app.building.tool_names import OUTPUT_TOOL, tool_names
from runs_app.requests.facts import FACTS
from runs_app.requests.messages import parse_messages
from runs_app.resolution import ResolvedAgent

TAKEN_TOOL_NAME_MESSAGE = "The agent already has a tool with this name. Rename your tool."
OUTPUT_TOOL_MESSAGE = "Models answer with objects by a tool of this name. Rename your tool."
RunInput = JSONObject  # the messages, options and client tools of a run, as stored in its row


def fill_input(
    agent: ResolvedAgent, run_input: RunInput, warnings: list[dict[str, str]]
) -> tuple[RunInput, list[dict[str, str]]]:
    """Add the instructions that the model gets to the input of a run, and return its warnings with those.

    Raise ConfigError if a required variable is missing or a value is invalid.
    """
    known = known_values(run_input.get("requestContext") or {}, run_input.get(FACTS) or {})
    filled = fill_instructions(agent.configuration, known)
    if filled.text != (agent.configuration.get("instructions") or ""):
        run_input = {**run_input, "instructions": filled.text}
    return run_input, [*warnings, *(warning._asdict() for warning in filled.warnings)]


def build_input(
    messages: object,
    options: JSONMapping,
    client_tools: list[JSONObject],
    request_context: JSONMapping,
    memory_options: JSONMapping = MappingProxyType({}),
) -> RunInput:
    """Return the input of a run as its row stores it. Raise ConfigError if it is invalid or too large."""
    run_input: RunInput = {"messages": parse_messages(messages), "options": dict(options)}
    if client_tools:
        run_input["clientTools"] = client_tools
    if request_context:
        run_input["requestContext"] = dict(request_context)
    if memory_options:
        run_input["memory"] = dict(memory_options)
    if len(json.dumps(run_input, ensure_ascii=False).encode()) > settings.RUN_MAX_INPUT:
        maximum = settings.RUN_MAX_INPUT // 1024
        message = f"The messages, options, tools and request context of a run must not exceed {maximum} KB together."
        raise ConfigError([Issue("messages", message)])
    return run_input


def reject_taken_tool_names(agent: ResolvedAgent, client_tools: list[JSONObject]) -> None:
    """Raise ConfigError if a client tool has the name of a tool of the agent. A model could not distinguish them."""
    names = tool_names(agent.configuration, agent.owner_id) if client_tools else ()
    taken = dict.fromkeys(names, TAKEN_TOOL_NAME_MESSAGE) | {OUTPUT_TOOL: OUTPUT_TOOL_MESSAGE}
    issues = [Issue(f"clientTools.{name}", taken[name]) for tool in client_tools if (name := tool["name"]) in taken]
    if issues:
        raise ConfigError(issues)


def without_known_messages(run_input: RunInput, thread: Thread | None) -> RunInput:
    """Return the input without the messages whose IDs the thread has. The last message always stays."""
    *earlier, last = run_input["messages"]
    keys = [message["id"] for message in earlier if "id" in message] if thread else []
    known = known_message_keys(thread, keys) if thread and keys else set()
    if not known:
        return run_input
    return {**run_input, "messages": [*(item for item in earlier if item.get("id") not in known), last]}
