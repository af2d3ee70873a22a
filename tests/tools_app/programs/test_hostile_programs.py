"""Programs that want more than they are given: writable folders, capabilities and processes."""

import os
import subprocess
import sys

import psutil
import pytest

from tests.tools_app.acp.conftest import BOXED
from tests.tools_app.programs.conftest import assert_refused
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
    children = [item for item in psutil.Process().children(recursive=True) if item.status() != psutil.STATUS_ZOMBIE]
    assert [item for item in children if code in item.cmdline()] == []


def test_a_program_cannot_make_what_it_sees_writable(tmp_path):
    """Also not as root, which has all capabilities in a namespace of its own unless they are dropped."""
    if BOXED != "boxed":
        assert_refused()
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


# --- As an ordinary user, as in production: the system itself limits what it starts.

HOG = "x = bytearray(600 * 1024 * 1024); print('allocated')"
SPIN = "import time; end = time.time() + 60\nwhile time.time() < end: pass\nprint('survived')"
ONE_MORE = "import os; pid = os.fork(); pid == 0 and os._exit(0); os.waitpid(pid, 0); print('started')"
NOBODY = 65534


def run_as_nobody(monkeypatch, box, code, **limits):
    """Run a program as an ordinary user, also where the tests are root."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    command = Command("hostile", ("/usr/bin/python3", "-c", code), sandbox="bwrap" if box == "boxed" else "none")
    argv = limited_argv(command, {**LIMITS, **limits})
    monkeypatch.undo()
    return subprocess.run(argv, capture_output=True, text=True, timeout=90, env=command.environment, **user)


@pytest.mark.parametrize("box", COMMANDS)
class TestOrdinaryUsers:
    def test_memory_is_limited(self, monkeypatch, box):
        done = run_as_nobody(monkeypatch, box, HOG, DATA=300 * 1024 * 1024)

        assert (done.returncode, done.stdout) == (1, "")
        assert "MemoryError" in done.stderr

    def test_processor_time_is_limited(self, monkeypatch, box):
        done = run_as_nobody(monkeypatch, box, SPIN, CPU=1)

        assert done.returncode != 0
        assert done.stdout == ""

    @pytest.mark.parametrize("code", [BOMB, THREADS])
    def test_processes_are_limited(self, monkeypatch, box, code):
        done = run_as_nobody(monkeypatch, box, code, NPROC=PROCESSES)

        assert done.stdout == "refused\n" or (done.returncode == 137 and "too many processes" in done.stderr)

    def test_other_processes_of_the_user_do_not_count(self, monkeypatch, box):
        """The limit is that of a program. The workers and the web server of the user have threads of their own."""
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        others = [subprocess.Popen(["/usr/bin/sleep", "60"], **user) for _ in range(PROCESSES + 5)]
        try:
            done = run_as_nobody(monkeypatch, box, ONE_MORE, NPROC=PROCESSES)
        finally:
            for process in others:
                process.kill()
                process.wait()

        assert done.stdout == "started\n", done.stderr
