"""A program that prints what it has from its parent, for the tests of forks."""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def open_files() -> list[str]:
    """Return the open files, without the one that libffi opens of itself since its version 3.5."""
    names = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listed folder itself, which is closed by now
            names.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in names if "libffi.so" not in name]


def report() -> dict[str, object]:
    streams = [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)]
    return {
        "name": __name__,
        "arguments": sys.argv[1:],
        "path": sys.path[0],
        "command line": Path("/proc/self/cmdline").read_text().rstrip("\0").split("\0"),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "leads its group": os.getpgid(0) == os.getpid(),
        "leads its session": os.getsid(0) == os.getpid(),
        "input": streams[0],
        "same output": streams[1] == streams[2],
        "open files": len(open_files()),
        "signals": {name.name: str(signal.getsignal(name)).partition(" at ")[0] for name in signal.Signals},
        "blocked signals": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    }


if __name__ == "__main__":
    print(json.dumps(report()))
    sys.exit(7)
