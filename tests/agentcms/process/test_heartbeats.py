"""Suspended web processes, which their parent kills because they are silent."""

import subprocess
import sys

import pytest

from agentcms.server.processes import PROJECT

SCRIPT = """
import multiprocessing, os, signal, sys, threading, time
from types import SimpleNamespace
import django
from agentcms.process import heartbeats
from agentcms.server import web

def work():
    heartbeats.start_heartbeats(0)
    for _ in range(60):
        time.sleep(0.1)
        heartbeats.beat()
        if sys.argv[1] == "suspend":
            os.kill(os.getpid(), signal.SIGSTOP)

web.SILENCE_CHECK_INTERVAL = 0.1
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
server = SimpleNamespace(wrks=[SimpleNamespace(idx=0, inner=process)])
threading.Thread(target=web.kill_silent_processes, args=(server, 3), daemon=True).start()
process.join()
print(process.exitcode, heartbeats.silent_seconds(0, process.pid) > 0)
"""


@pytest.mark.parametrize(("act", "result"), [("suspend", "-9 False"), ("work", "0 True")])
def test_a_suspended_process_is_killed(act, result):
    done = subprocess.run([sys.executable, "-c", SCRIPT, act], cwd=PROJECT, capture_output=True, text=True, timeout=60)

    assert done.stdout.strip() == result, done.stderr
    assert ("has not reacted for 3 s and is killed" in done.stderr) == (act == "suspend")
