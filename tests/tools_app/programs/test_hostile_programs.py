"""Programs that want more than they are given: writable folders, capabilities and processes."""

import subprocess
import sys

import psutil
import pytest

from tests.tools_app.acp.conftest import BOXED
from tools_app.programs.commands import Command
from tools_app.programs.resource_limits import LIMITS, limited_argv

COMMANDS = sorted({BOXED, "bare"})
PROCESSES = 20
BOMB = """
import os, sys, threading, time
for _ in range(300):
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError:
        print("refused", flush=True)
        sys.exit()
time.sleep(3)
print("survived")
"""
THREADS = """
import threading, time
for _ in range(300):
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        print("refused", flush=True)
        break
else:
    time.sleep(3)
    print("survived")
"""


def run_program(box, code, mounts=(), **limits):
    command = Command("hostile", (sys.executable, "-c", code), sandbox="bwrap" if box == "boxed" else "none")
    argv = limited_argv(command, {**LIMITS, **limits}, mounts=mounts)
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, env=command.environment)


@pytest.mark.parametrize("box", COMMANDS)
@pytest.mark.parametrize("code", [BOMB, THREADS])
def test_a_program_that_starts_ever_more_processes_is_stopped(box, code):
    """The system refuses them, or the launcher ends the program: nothing limits the processes of root."""
    done = run_program(box, code, NPROC=PROCESSES)

    assert done.stdout == "refused\n" or (done.returncode == 137 and "too many processes" in done.stderr)
    assert [item for item in psutil.Process().children(recursive=True) if code in item.cmdline()] == []


def test_a_program_cannot_make_what_it_sees_writable(tmp_path):
    """Also not as root, which has all capabilities in a namespace of its own unless they are dropped."""
    if BOXED != "boxed":
        return
    file = tmp_path / "file"
    file.write_text("before")
    code = """
import ctypes
MS_REMOUNT, MS_BIND = 32, 4096
print(ctypes.CDLL(None).mount(b"none", b"/workspace", None, MS_REMOUNT | MS_BIND, None))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")])
open("/workspace/file", "w").write("after")
"""
    done = run_program("boxed", code, ["--ro-bind", str(tmp_path), "/workspace"])

    assert done.stdout.split() == ["-1", "['0000000000000000']"]
    assert "Read-only file system" in done.stderr
    assert file.read_text() == "before"
