"""Command lines of programs whose resources are limited."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools_app.programs import launcher
from tools_app.programs.commands import Command
from tools_app.programs.sandbox import sandboxed_argv

SCRIPT_INSIDE = "/run/launcher.py"  # in the sandbox
SANDBOX_PROCESSES = 2
MEGABYTE = 1024 * 1024
LIMITS = {"DATA": 2048 * MEGABYTE, "NPROC": 64, "CPU": 600, "CORE": 0}  # of one process; CPU in seconds


def limited_argv(
    command: Command,
    limits: Mapping[str, int] = LIMITS,
    folder: str = "",
    mounts: Sequence[str] = (),
    proxy: str = "",
) -> list[str]:
    """Return the command line of a command: the sandbox if it has one, the launcher, and the program.

    `limits` are values of `setrlimit` by the name of the resource. `folder` is where the program starts, `mounts` are
    further options of the sandbox, and `proxy` is the path of a socket in it to which HTTP requests go. A program
    without a sandbox ends with this process.
    """
    processes = limits.get("NPROC", 0)
    if not command.is_sandboxed:
        # Counted: the system would count the threads of our web server and workers too, which are of the same user.
        others = {name: value for name, value in limits.items() if name != "NPROC"}
        return supervised_argv(command.argv, folder or "/", others, processes)
    most = processes if os.geteuid() == 0 else 0  # the system does not limit the processes of root
    boxed = sandboxed_launcher_argv(command, limits, folder or "/tmp", mounts, proxy)  # noqa: S108  in the sandbox
    # Outside of the sandbox, where the program cannot stop it. The sandbox itself has two processes.
    return supervised_argv(boxed, "/", {}, most + SANDBOX_PROCESSES) if most else boxed


def sandboxed_launcher_argv(
    command: Command, limits: Mapping[str, int], folder: str, mounts: Sequence[str], proxy: str
) -> list[str]:
    """Return the command line of the sandbox with the launcher and a program in it."""
    mounts = [*mounts, "--ro-bind", launcher.__file__, SCRIPT_INSIDE]
    if not Path(sys.base_prefix).is_relative_to("/usr"):
        mounts += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    options = {"folder": folder, "limits": dict(limits), "proxy": proxy, "parent": 0}
    return sandboxed_argv(command.argv, mounts, [*launcher_argv(SCRIPT_INSIDE, options), *command.argv])


def supervised_argv(argv: Sequence[str], folder: str, limits: Mapping[str, int], processes: int) -> list[str]:
    """Return the command line of a launcher that ends a program with this process, or for its many processes."""
    options = {"folder": folder, "limits": dict(limits), "proxy": "", "parent": os.getpid(), "processes": processes}
    return [*launcher_argv(launcher.__file__, options), *argv]


def launcher_argv(script: str, options: Mapping[str, object]) -> list[str]:
    return [os.path.realpath(sys.executable), "-I", "-S", script, json.dumps(options)]
