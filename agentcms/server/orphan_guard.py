"""A script that stops the processes of a killed supervisor.

`processes.OrphanGuard` runs it. It uses only the standard library, so that it stays small. It reads process groups and
folders from standard input. When the input ends, the supervisor is gone: the script stops the groups and removes the
folders.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable

STOP_TIMEOUT = 5.0  # seconds between SIGTERM and SIGKILL


def main() -> None:
    groups: set[int] = set()
    paths: set[str] = set()
    for line in sys.stdin:
        word, _, value = line.rstrip("\n").partition(" ")
        if word == "started":
            groups.add(int(value))
        elif word == "ended":
            groups.discard(int(value))
        elif word == "remove":
            paths.add(value)
    stop_groups(groups)
    for path in paths:
        remove_path(path)


def stop_groups(groups: Iterable[int]) -> None:
    """Stop the groups with SIGTERM, and the remaining ones with SIGKILL."""
    remaining = {group for group in groups if signal_group(group, signal.SIGTERM)}
    deadline = time.monotonic() + STOP_TIMEOUT
    while remaining and time.monotonic() < deadline:
        time.sleep(0.05)
        remaining = {group for group in remaining if signal_group(group, 0)}
    for group in remaining:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group. Return False if the group has no processes."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def remove_path(path: str) -> None:
    """Remove a file or a folder, if it exists."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.remove(path)


if __name__ == "__main__":
    main()
