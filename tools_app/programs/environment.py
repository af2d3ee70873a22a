"""The environment that staff set for an ACP agent. Its values are secrets."""

from __future__ import annotations

from collections.abc import Mapping

from django.core.exceptions import ValidationError

from tools_app.programs.commands import Command

MAX_ENVIRONMENT_VARIABLES = 50
MAX_VALUE_LENGTH = 8000  # characters
MASK = "••••"
MIN_SECRET_LENGTH = 4  # shorter values are in many words


def validate_environment(environment: Mapping[str, str], command: Command | None) -> None:
    """Raise ValidationError unless the command may get these variables. The message quotes no value.

    Otherwise a variable such as LD_PRELOAD could start what the operator did not list.
    """
    if len(environment) > MAX_ENVIRONMENT_VARIABLES:
        raise ValidationError(f"An agent has at most {MAX_ENVIRONMENT_VARIABLES} variables.", "environment")
    allowed = command.environment_names if command is not None else ()
    for name, value in environment.items():
        if name not in allowed:
            listed = ", ".join(allowed) or "none"
            message = (
                f"The command does not allow the variable '{name[:100]}'. Allowed by env in ACP_COMMANDS: {listed}."
            )
            raise ValidationError(message, "environment")
        if "\0" in value or value == MASK or len(value) > MAX_VALUE_LENGTH:
            raise ValidationError(f"The value of {name} cannot be used. Enter it again.", "environment")


def with_stored_values(values: Mapping[str, str], stored: Mapping[str, str] | None) -> dict[str, str]:
    """Return values with the stored one in place of each mask, which responses have in place of the values."""
    known = stored or {}
    return {name: known.get(name, MASK) if value == MASK else value for name, value in values.items()}


def mask_values(text: str, values: Mapping[str, str]) -> str:
    """Return a text of the program without the values of its environment."""
    for value in sorted(values.values(), key=len, reverse=True):
        if len(value) >= MIN_SECRET_LENGTH:
            text = text.replace(value, MASK)
    return text


def without_rest_of_value(text: str, values: Mapping[str, str]) -> str:
    """Return a text whose beginning was cut, without the rest of a value there, which is no longer recognized."""
    text = text.lstrip("\N{REPLACEMENT CHARACTER}")  # of a character that was cut
    rests = (
        len(value) - start
        for value in values.values()
        for start in range(len(value))
        if text.startswith(value[start:])
    )
    return text[max(rests, default=0) :]
