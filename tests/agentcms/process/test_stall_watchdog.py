"""The watchdog that ends a process which no longer reacts."""

import subprocess
import sys
import time

import pytest

from agentcms.server.processes import PROJECT

SCRIPT = """
import asyncio, re, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from agentcms.process import stall_watchdog

def hold_the_interpreter():
    re.match(r"(a+)+$", "a" * 60 + "b")

def block_the_loop():
    loop.call_soon(time.sleep, 60)

def block_another_loop():
    other = asyncio.new_event_loop()
    threading.Thread(target=other.run_forever, daemon=True).start()
    stall_watchdog.watch_loop(other)
    other.call_soon_threadsafe(time.sleep, 60)

def block_the_probes():
    probes.submit(time.sleep, 60)

def react():
    pass

loop, probes = asyncio.new_event_loop(), ThreadPoolExecutor(1)
stall_watchdog.REWIND_SECONDS = 0.1
watchdog = stall_watchdog.StallWatchdog(int(sys.argv[2]), probes)
watchdog.start(loop)
fault = globals()[sys.argv[1]]
loop.call_later(0.3, lambda: threading.Thread(target=fault, daemon=True).start())
loop.run_until_complete(asyncio.sleep(int(sys.argv[2]) + 2))
watchdog.stop()
print("went on")
"""


@pytest.mark.parametrize("fault", ["hold_the_interpreter", "block_the_loop", "block_another_loop", "block_the_probes"])
def test_a_stalled_process_ends_with_a_traceback(fault):
    began = time.monotonic()

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, fault, "1"], cwd=PROJECT, capture_output=True, text=True, timeout=50
    )

    assert done.returncode == 1
    assert "Timeout (0:00:01)!" in done.stderr
    assert "most recent call first" in done.stderr
    assert "went on" not in done.stdout
    assert time.monotonic() - began < 40


def test_a_process_that_reacts_goes_on():
    # On a busy machine, a process may not run for a second.
    done = subprocess.run([sys.executable, "-c", SCRIPT, "react", "4"], cwd=PROJECT, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
