"""The refusal of programs in requests, forms and files. Only the operator of the server names programs."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import PydanticCustomError

COMMAND_MEMBERS = frozenset({"command", "args", "argv"})
COMMAND_NOT_ALLOWED = "command_not_allowed"
AGENT_COMMAND_MESSAGE = "Commands are not taken from an agent. Name a server that a manager added."


def names_program(value: object) -> bool:
    """Return True if an object, or one inside of it, has a member that names a program."""
    if isinstance(value, Mapping):
        return bool(COMMAND_MEMBERS & value.keys()) or any(map(names_program, value.values()))
    return isinstance(value, list) and any(map(names_program, value))


def reject_program_of_server(choice: object) -> object:
    """Reject the choice of an MCP server that names a program. The names of its tools may be any text."""
    if not isinstance(choice, dict):
        return choice
    tools = choice.get("tools")
    parts = [value for name, value in choice.items() if name != "tools"]
    parts += tools.values() if isinstance(tools, dict) else [tools]
    if COMMAND_MEMBERS & choice.keys() or any(map(names_program, parts)):
        raise PydanticCustomError(COMMAND_NOT_ALLOWED, AGENT_COMMAND_MESSAGE)
    return choice
