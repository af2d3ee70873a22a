"""Ends what a killed supervisor left behind.

Run as a script by `children.Watchdog`, with nothing but the standard library so that it stays small. It reads from
its standard input which process groups and folders there are; when that closes, the supervisor is gone, and so must
they be.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable

STOP_TIMEOUT = 5.0  # seconds between asking and forcing


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
    """Ask the groups to end, and force those that do not."""
    left = {group for group in groups if signal_group(group, signal.SIGTERM)}
    deadline = time.monotonic() + STOP_TIMEOUT
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = {group for group in left if signal_group(group, 0)}
    for group in left:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: int) -> bool:
    """Whether there was anybody in the group to send the signal to."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def remove_path(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.remove(path)


if __name__ == "__main__":
    main()
