"""A worker that is killed leaves no process of an ACP agent behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DRILL
from tests.served import wait_until
from tests.tools_app.acp.conftest import BOXED, PROGRAM

PROJECT = Path(__file__).parent.parent.parent.parent
KILLS, SECONDS = (50, 2) if DRILL else (1, 10)  # the drill runs alone on its machine
WORKER = """
import asyncio, sys
from pathlib import Path
import django
django.setup()
from tools_app.acp.limits import Limits
from tools_app.acp.permissions import Decisions
from tools_app.acp.connection.process import AgentProcess
from tools_app.acp.cached_agents import AcpRecord
from tools_app.acp.turn import PromptTurn
from django.conf import settings

command, program, folder, seconds = sys.argv[1:]
argv = [sys.executable, program]
settings.ACP_COMMANDS = {"boxed": {"argv": argv}, "bare": {"argv": argv, "sandbox": "none"}}
record = AcpRecord(1, "a", "A", "", command, "", False, "first_option", Limits(), "", "", 1, "", "")

async def main():
    process = AgentProcess(record, Path(folder))
    await process.start()
    turn = PromptTurn(lambda update: print(update.text, flush=True), Decisions("first_option", False))
    await process.prompt([f"hang {seconds}"], turn)

asyncio.run(main())
"""


def command_lines(text):
    """Return the IDs of the processes whose command line contains a text."""
    ids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_text():
                ids.append(path.parent.name)
        except OSError:
            continue
    return ids


@pytest.mark.parametrize("command", sorted({BOXED, "bare"}))
def test_a_killed_worker_leaves_no_process(command, tmp_path):
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(PROJECT)}
    for number in range(KILLS):
        seconds = f"4{os.getpid()}{number:03}"
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, command, str(PROGRAM), str(tmp_path), seconds],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert worker.stdout.readline() == "hanging\n"
        wait_until(lambda sleep=f"sleep\0{seconds}": command_lines(sleep), 10, "the process of the agent")
        worker.send_signal(signal.SIGKILL)
        worker.wait()

        wait_until(lambda sleep=f"sleep\0{seconds}": not command_lines(sleep), SECONDS, "the end of all processes")
        wait_until(lambda: not command_lines(str(tmp_path)), SECONDS, "the end of the sandbox")
