"""The sandbox of programs: bubblewrap, with namespaces of its own and only a few folders of the machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SANDBOX, NO_SANDBOX = "bwrap", "none"
MAX_FIRST_LINE = 256  # bytes, as Linux reads of a script
# Of the machine, only programs and libraries. A process in its own namespaces sees no other and has no network.
SANDBOX_ARGUMENTS = (
    "--unshare-all",
    "--unshare-user",
    # A program of root would keep the capabilities in its namespaces, and could make the folders below writable.
    *("--cap-drop", "ALL"),
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


def sandboxed_argv(argv: Sequence[str], mounts: Sequence[str] = (), launched: Sequence[str] = ()) -> list[str]:
    """Return the command line of a program in the sandbox.

    `mounts` are further arguments of bubblewrap. `launched` is a command line that starts the program.
    """
    visible = [argument for folder in visible_paths(argv) for argument in ("--ro-bind", folder, folder)]
    return [sandbox_program(), *SANDBOX_ARGUMENTS, *visible, *mounts, "--", *(launched or argv)]


def visible_paths(argv: Sequence[str]) -> list[str]:
    """Return what the sandbox shows besides /usr: the folder of the program, and the files that its arguments name.

    For a script also the folder of its interpreter, which may be elsewhere, as in a virtual environment.
    """
    programs = [Path(argv[0]), *interpreters(Path(argv[0]))]
    folders = [installation_folder(path) for program in programs for path in (program, program.resolve())]
    files = [Path(argument) for argument in argv[1:] if argument.startswith("/") and Path(argument).exists()]
    return list(dict.fromkeys(str(path) for path in (*folders, *files) if not path.is_relative_to("/usr")))


def interpreters(program: Path) -> list[Path]:
    """Return the interpreter that the first line of a script names, or nothing for other programs."""
    try:
        with program.open("rb") as file:
            line = file.readline(MAX_FIRST_LINE)
    except OSError:
        return []
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    return [Path(word) for word in words[:1] if word.startswith("/")]


def installation_folder(program: Path) -> Path:
    """Return the folder of a program with what it belongs to: the parent of a folder `bin`."""
    return program.parent.parent if program.parent.name == "bin" else program.parent


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
