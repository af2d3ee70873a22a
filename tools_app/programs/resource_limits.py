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
    python, script = os.path.realpath(sys.executable), launcher.__file__
    options = {"folder": folder or "/tmp", "limits": dict(limits), "proxy": proxy, "parent": 0}  # noqa: S108
    # The system does not limit the processes of root.
    most = limits.get("NPROC", 0) if os.geteuid() == 0 else 0
    supervision = {"folder": folder or "/", "proxy": "", "parent": os.getpid(), "processes": most}
    supervised = [python, "-I", "-S", script]
    if not command.is_sandboxed:
        return [*supervised, json.dumps({**options, **supervision}), *command.argv]
    mounts = [*mounts, "--ro-bind", script, SCRIPT_INSIDE]
    if not Path(sys.base_prefix).is_relative_to("/usr"):
        mounts += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    launched = [python, "-I", "-S", SCRIPT_INSIDE, json.dumps(options), *command.argv]
    boxed = sandboxed_argv(command.argv, mounts, launched)
    if not most:
        return boxed
    # Outside of the sandbox, where the program cannot stop it. The sandbox itself has two processes.
    supervision |= {"folder": "/", "limits": {}, "processes": most + SANDBOX_PROCESSES}
    return [*supervised, json.dumps(supervision), *boxed]
