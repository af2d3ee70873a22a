"""The programs that MCP servers and ACP agents may be: those of MCP_COMMANDS and ACP_COMMANDS.

Only the operator writes these settings. Each program runs in a sandbox of bubblewrap, unless the operator says that it
needs none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import ValidationError

from tools_app.programs import sandbox
from tools_app.programs.sandbox import NO_SANDBOX, SANDBOX

NO_NETWORK, PROXY = "none", "proxy"
MISSING_COMMAND_MESSAGE = "Choose a key of {setting}, which the operator of the server sets."
UNKNOWN_COMMAND_MESSAGE = "Unknown command '{key}'. " + MISSING_COMMAND_MESSAGE
NO_SANDBOX_MESSAGE = (
    "The command '{key}' cannot be started: bubblewrap is not available on this machine. Ask the operator to install "
    'it, or to write "sandbox": "none" for this command in {setting}.'
)
# Not the other variables of the server, among which are its secrets.
INHERITED_VARIABLES = ("LANG", "LC_ALL", "PATH", "TZ")


@dataclass(frozen=True)
class Command:
    """A program of a setting."""

    key: str
    argv: tuple[str, ...]
    environment_names: tuple[str, ...] = ()
    sandbox: str = SANDBOX
    network: str = NO_NETWORK  # in the sandbox
    setting: str = "MCP_COMMANDS"

    @property
    def is_sandboxed(self) -> bool:
        return self.sandbox != NO_SANDBOX

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the program: what each program needs, and what the operator named."""
        names = (*INHERITED_VARIABLES, *self.environment_names)
        return {name: os.environ[name] for name in names if name in os.environ}

    @property
    def full_argv(self) -> list[str]:
        """The command line that is started, with the sandbox."""
        return sandbox.sandboxed_argv(self.argv) if self.is_sandboxed else list(self.argv)

    def require_sandbox(self) -> None:
        """Raise ValidationError if the command needs a sandbox and this machine has none."""
        if self.is_sandboxed and not sandbox.is_sandbox_available():
            raise ValidationError(NO_SANDBOX_MESSAGE.format(key=self.key, setting=self.setting), "sandbox")


@dataclass(frozen=True)
class CommandList:
    """The commands of a setting. `default_setting` names the setting with the sandbox of those that name none."""

    setting: str
    default_setting: str = ""

    def all(self) -> dict[str, Command]:
        """Return the commands by key."""
        default = getattr(settings, self.default_setting) if self.default_setting else SANDBOX
        return {
            key: Command(
                key,
                tuple(value["argv"]),
                tuple(value.get("env", ())),
                value.get("sandbox", default),
                value.get("network", NO_NETWORK),
                self.setting,
            )
            for key, value in getattr(settings, self.setting).items()
        }

    def find(self, key: str) -> Command | None:
        return self.all().get(key)

    def get(self, key: str) -> Command:
        """Return the command of a key. Raise ValidationError if there is none."""
        command = self.find(key)
        if command is None:
            message = UNKNOWN_COMMAND_MESSAGE if key else MISSING_COMMAND_MESSAGE
            raise ValidationError(message.format(key=key, setting=self.setting), "command_key")
        return command


MCP_COMMANDS = CommandList("MCP_COMMANDS")
ACP_COMMANDS = CommandList("ACP_COMMANDS", "ACP_SANDBOX")


def command_error(value: object, *, has_network: bool) -> str:
    """Return what is wrong with a command of a setting, or a blank text. `has_network` allows the member of ACP."""
    if not isinstance(value, dict):
        return 'must be an object such as {"argv": ["/opt/server/bin/run"]}.'
    argv = value.get("argv")
    if not (isinstance(argv, list) and argv and all(isinstance(part, str) and part for part in argv)):
        return "needs argv, a list of texts."
    if not argv[0].startswith("/"):
        return "must begin with the absolute path of its program."
    names = value.get("env", [])
    if not (isinstance(names, list) and all(isinstance(name, str) and name for name in names)):
        return "has an invalid env: it is a list of names of environment variables."
    if value.get("sandbox", SANDBOX) not in (SANDBOX, NO_SANDBOX):
        return f'has an invalid sandbox: it is "{SANDBOX}" or "{NO_SANDBOX}".'
    if has_network and value.get("network", NO_NETWORK) not in (NO_NETWORK, PROXY):
        return f'has an invalid network: it is "{NO_NETWORK}" or "{PROXY}".'
    known = {"argv", "env", "sandbox"} | ({"network"} if has_network else set())
    if unknown := sorted(value.keys() - known):
        return f"has an unknown member '{unknown[0]}'."
    return ""
