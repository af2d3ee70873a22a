"""The programs that MCP servers may be: those of MCP_COMMANDS, which only the operator writes.

Each runs in a sandbox of bubblewrap, unless the operator says that it needs none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError

SANDBOX, NO_SANDBOX = "bwrap", "none"
UNKNOWN_COMMAND_MESSAGE = (
    "Unknown command '{key}'. Choose a key of MCP_COMMANDS, which the operator of the server sets."
)
NO_SANDBOX_MESSAGE = (
    "The command '{key}' cannot be started: bubblewrap is not available on this machine. Ask the operator to install "
    'it, or to write "sandbox": "none" for this command in MCP_COMMANDS.'
)
# Of the machine, only programs and libraries. A process in its own namespaces sees no other and has no network.
SANDBOX_ARGUMENTS = (
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--ro-bind",
    "/usr",
    "/usr",
    *("--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin"),
    *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
    *("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"),
    *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"),  # noqa: S108  inside the sandbox
    *("--setenv", "HOME", "/tmp"),  # noqa: S108
)
INHERITED_VARIABLES = ("LANG", "LC_ALL", "PATH", "TZ")


@dataclass(frozen=True)
class Command:
    """A program of MCP_COMMANDS."""

    key: str
    argv: tuple[str, ...]
    environment_names: tuple[str, ...] = ()
    sandbox: str = SANDBOX

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the program: what each program needs, and what the operator named."""
        names = (*INHERITED_VARIABLES, *self.environment_names)
        return {name: os.environ[name] for name in names if name in os.environ}

    @property
    def full_argv(self) -> list[str]:
        """The command line that is started, with the sandbox."""
        if self.sandbox == NO_SANDBOX:
            return list(self.argv)
        shown = [argument for folder in self.visible_paths for argument in ("--ro-bind", folder, folder)]
        return [sandbox_program(), *SANDBOX_ARGUMENTS, *shown, "--", *self.argv]

    @property
    def visible_paths(self) -> list[str]:
        """What the sandbox shows besides /usr: the folder of the program, and the files that its arguments name."""
        program = Path(self.argv[0])
        folders = [installation_folder(program), installation_folder(program.resolve())]
        files = [Path(argument) for argument in self.argv[1:] if argument.startswith("/") and Path(argument).exists()]
        return list(dict.fromkeys(str(path) for path in (*folders, *files) if not path.is_relative_to("/usr")))


def installation_folder(program: Path) -> Path:
    """Return the folder of a program with what it belongs to: the parent of a folder `bin`."""
    return program.parent.parent if program.parent.name == "bin" else program.parent


def all_commands() -> dict[str, Command]:
    """Return the commands of MCP_COMMANDS by key."""
    return {
        key: Command(key, tuple(value["argv"]), tuple(value.get("env", ())), value.get("sandbox", SANDBOX))
        for key, value in settings.MCP_COMMANDS.items()
    }


def find_command(key: str) -> Command | None:
    return all_commands().get(key)


def get_command(key: str) -> Command:
    """Return the command of a key. Raise ValidationError if there is none."""
    command = find_command(key)
    if command is None:
        raise ValidationError(UNKNOWN_COMMAND_MESSAGE.format(key=key), "command_key")
    return command


def require_sandbox(command: Command) -> None:
    """Raise ValidationError if a command needs a sandbox and this machine has none."""
    if command.sandbox != NO_SANDBOX and not is_sandbox_available():
        raise ValidationError(NO_SANDBOX_MESSAGE.format(key=command.key), "sandbox")


def command_error(value: Any) -> str:
    """Return what is wrong with a command of MCP_COMMANDS, or a blank text."""
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
    if unknown := sorted(value.keys() - {"argv", "env", "sandbox"}):
        return f"has an unknown member '{unknown[0]}'."
    return ""


def sandbox_program() -> str:
    return shutil.which("bwrap") or ""


@cache
def is_sandbox_available() -> bool:
    """Return whether bubblewrap is installed and allowed to create namespaces."""
    program = sandbox_program()
    if not program:
        return False
    done = subprocess.run([program, *SANDBOX_ARGUMENTS, "--", "/usr/bin/true"], capture_output=True, timeout=10)
    return done.returncode == 0
