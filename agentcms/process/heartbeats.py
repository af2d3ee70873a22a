"""The times at which web processes last reacted, in memory that they share with the process that started them.

The watchdog of a process cannot run while the process is suspended, as by SIGSTOP or a debugger. Its parent sees here
that it is silent, and kills it.
"""

from __future__ import annotations

import os
import time
from multiprocessing.sharedctypes import RawArray

MAX_PROCESSES = 256

# Two numbers for each process: its ID, and the time of its last heartbeat on the monotonic clock of the system.
_heartbeats = RawArray("d", 2 * MAX_PROCESSES)
_own_index: int | None = None


def start_heartbeats(index: int) -> None:
    """Record the heartbeats of this process under an index, from 0. Processes beyond the last index have none."""
    global _own_index
    _own_index = index if index < MAX_PROCESSES else None
    beat()


def beat() -> None:
    """Record that this process reacts."""
    if _own_index is not None:
        # The time first: a reader that sees the ID takes the time for that of this process.
        _heartbeats[2 * _own_index + 1] = time.monotonic()
        _heartbeats[2 * _own_index] = os.getpid()


def forget(index: int) -> None:
    """Remove the heartbeats under an index, because their process was killed."""
    _heartbeats[2 * index] = 0


def silent_seconds(index: int, pid: int | None) -> float:
    """Return the time since the last heartbeat of a process, or 0 if it has not sent one."""
    if index >= MAX_PROCESSES or pid is None or _heartbeats[2 * index] != pid:
        return 0.0
    return time.monotonic() - float(_heartbeats[2 * index + 1])
