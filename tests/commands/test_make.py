"""The commands of the Makefile."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentcms.server.processes import PROJECT
from tests.commands.test_stopping import all_ended
from tests.served import Served, wait_until
from tests.served_accounts import prepared


class MakeCopy(Served):
    """A copy that `make run` starts in its own process group, like a terminal."""

    def launch(self) -> subprocess.Popen[bytes]:
        command = ["make", "--no-print-directory", "run"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self.environment, cwd=PROJECT, stdout=log, stderr=log, start_new_session=True
            )
        return self.process


@pytest.fixture
def make_copy(tmp_path: Path) -> Iterator[Served]:
    with prepared(tmp_path / "var", MakeCopy) as copy:
        try:
            yield copy.start()
        finally:
            copy.kill()


def press_ctrl_c(process):
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize(
    "end", [press_ctrl_c, subprocess.Popen.terminate, subprocess.Popen.kill], ids=["Ctrl-C", "TERM", "KILL"]
)
def test_every_end_of_make_run_leaves_no_process(make_copy, end):
    everybody = make_copy.processes()

    end(make_copy.process)

    make_copy.process.wait(20)
    wait_until(lambda: all_ended(everybody), 20, "nobody left")
    assert len(everybody) > 5


def test_make_lists_every_command():
    commands = set(re.search(r"^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)[1].split())

    output = subprocess.run(["make"], cwd=PROJECT, capture_output=True, text=True, timeout=30).stdout

    assert set(re.findall(r"^  make (\S+)  +\S", output, re.MULTILINE)) == commands
    assert {"run", "test", "drill", "lint", "format", "types"} <= commands
