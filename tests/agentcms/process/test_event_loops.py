"""Event loops in threads: what happens to the process if one breaks off."""

import subprocess
import sys

import pytest

from agentcms.server.processes import PROJECT

SCRIPT = """
import asyncio, sys, time
from agentcms.process.event_loops import start_loop

async def fail():
    raise {error}("now")

loop = start_loop("work")
asyncio.run_coroutine_threadsafe(fail(), loop)
asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)
time.sleep(0.5)
print("goes on", flush=True)
time.sleep({seconds})
"""


def run_script(error, seconds):
    script = SCRIPT.format(error=error, seconds=seconds)
    return subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("error", ["SystemExit", "KeyboardInterrupt"])
def test_a_loop_that_breaks_off_ends_its_process(error):
    ended = run_script(error, 25)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "An event loop broke off, so this process ends." in ended.stderr


def test_an_error_of_a_task_ends_no_loop():
    ended = run_script("ValueError", 0)

    assert (ended.returncode, ended.stdout) == (0, "goes on\n")
