"""The sandbox of programs: bubblewrap, with namespaces of its own and only a few folders of the machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from django.conf import settings

SANDBOX, NO_SANDBOX = "bwrap", "none"
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64")  # all lead into /usr, also in the sandbox
BESIDE_BIN = ("lib", "lib64", "libexec", "share", "pyvenv.cfg")  # of a virtual environment, Python or Node.js
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
    data = settings.DATA_DIR.resolve()  # with the secret key, and the database where it is SQLite
    above: list[str] = []
    others: list[str] = []
    for path in visible_paths(argv):
        (above if data.is_relative_to(Path(path).resolve()) else others).append(path)
    visible = [argument for path in (*above, *others) for argument in ("--ro-bind", path, path)]
    if above:
        # bubblewrap mounts in the order of the arguments. The empty folder comes after the folders that contain it, or
        # it would be covered, and before those inside of it that the program needs.
        visible[3 * len(above) : 3 * len(above)] = ["--tmpfs", str(data)]
    return [sandbox_program(), *SANDBOX_ARGUMENTS, *visible, *mounts, "--", *(launched or argv)]


def visible_paths(argv: Sequence[str]) -> list[str]:
    """Return what the sandbox shows besides /usr: the folder of the program, and the files that its arguments name.

    For a script also the folder of its interpreter, which may be elsewhere, as in a virtual environment.
    """
    programs = [Path(argv[0]), *interpreters(Path(argv[0]))]
    paths = [path for program in programs for file in (program, program.resolve()) for path in installed_paths(file)]
    paths += [Path(argument) for argument in argv[1:] if argument.startswith("/")]
    visible = [path for path in paths if path.exists() and not any(map(path.is_relative_to, SYSTEM_FOLDERS))]
    return list(dict.fromkeys(map(str, visible)))


def interpreters(program: Path) -> list[Path]:
    """Return the interpreter that the first line of a script names, or nothing for other programs."""
    try:
        with program.open("rb") as file:
            line = file.readline(MAX_FIRST_LINE)
    except OSError:
        return []
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    return [Path(word) for word in words[:1] if word.startswith("/")]


def installed_paths(program: Path) -> list[Path]:
    """Return the folder of a program. With a folder `bin`, also those beside it that belong to an installation.

    Not the folder above: that of `/bin/sh` is the whole machine, and that of a person has keys.
    """
    folder = program.parent
    if folder == folder.parent:
        return [program]
    return [folder, *(folder.parent / name for name in BESIDE_BIN if folder.name == "bin")]


def sandbox_program() -> str:
    return shutil.which("bwrap") or ""


@cache
def is_sandbox_available() -> bool:
    """Return whether bubblewrap is installed and allowed to create namespaces."""
    program = sandbox_program()
    if not program:
        return False
    done = subprocess.run([program, *SANDBOX_ARGUMENTS, "--", "/usr/bin/true"], capture_output=True, timeout=60)
    return done.returncode == 0
