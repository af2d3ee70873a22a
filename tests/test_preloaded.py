"""The forks that replace new processes in tests."""

import json
import os
import subprocess
import sys

import pytest

from agentcms.server.processes import PROJECT
from tests.preloaded import SPACE
from tests.preloaded_copy import PreloadedCopy

MODULE = "tests.process_report"
# A supervisor with a handler of signals and an open file, whose children are forks or, with "exec", new processes.
SUPERVISOR = """
import json, os, signal, subprocess, sys
from agentcms.server.processes import Child
from tests.preloaded import ForkingPopen

sys.path[0] = os.getcwd()  # as after `-m`
if sys.argv[1] == "fork":
    subprocess.Popen = ForkingPopen
signal.signal(signal.SIGTERM, lambda *_: None)
os.pipe()
os.environ["OWN"] = "of the supervisor"
child = Child("child", [sys.executable, "-W", "ignore:nothing", "-m", "tests.process_report", "word"], {"A": "b"})
child.start()
output = child.process.stdout.read()
print(json.dumps([json.loads(output), child.process.wait()]))
"""

# A supervisor whose first child is a fork with loaded settings, and its second one has other settings.
LOADING_SUPERVISOR = """
import os, subprocess, sys
from agentcms.server.processes import Child
from tests.preloaded import ForkingPopen

sys.path[0] = os.getcwd()  # as after `-m`
subprocess.Popen = ForkingPopen
for hosts in ("one.example.org", "two.example.org"):
    environment = {**os.environ, "DEMO_DATA": "no", "ALLOWED_HOSTS": hosts, "PORT": hosts[:3]}
    child = Child("child", [sys.executable, "-m", "tests.settings_report"], environment)
    child.start()
    print(child.process.stdout.read().decode(), flush=True)
print(sorted(name for name in os.environ if name in ("ALLOWED_HOSTS", "PORT")))
"""


def reported(text):
    content = json.loads(text)
    content["environment"].pop("LC_CTYPE", None)  # Python sets it at the start where the environment names no locale
    return content


@pytest.mark.parametrize("start_new_session", [True, False])
def test_a_fork_has_what_a_new_process_has(tmp_path, start_new_session):
    copy, log = PreloadedCopy(tmp_path / "var"), tmp_path / "log"
    new = subprocess.run(
        [sys.executable, "-m", MODULE, "word"],
        env={**copy.environment, "OWN": "value"},
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=start_new_session,
    )

    fork = copy.start_module(MODULE, "word", log=log, start_new_session=start_new_session, OWN="value")

    assert fork.wait(30) == new.returncode == 7
    assert reported(log.read_text()) == reported(new.stdout)


def test_a_child_of_the_supervisor_has_what_a_new_process_has():
    (fork, code), (new, _) = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", SUPERVISOR, kind, SPACE],
                env={**os.environ, "PYTHONPATH": str(PROJECT)},
                cwd=PROJECT,
                capture_output=True,
                check=True,
            ).stdout
        )
        for kind in ("fork", "exec")
    )

    assert code == 7
    assert reported(json.dumps(fork)) == reported(json.dumps(new))


def test_children_of_the_supervisor_share_the_settings_of_one_environment_only(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    output = subprocess.run(
        [sys.executable, "-c", LOADING_SUPERVISOR, SPACE],
        env={**environment, "PYTHONPATH": str(PROJECT), "DATA_DIR": str(tmp_path)},
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout

    first, second, supervisor = output.split("\n\n")
    data = {"data": str(tmp_path), "metrics": []}
    assert json.loads(first) == {**data, "loaded": True, "hosts": ["one.example.org"]}
    assert json.loads(second) == {**data, "loaded": False, "hosts": ["two.example.org"]}
    assert supervisor.strip() == "[]"  # the environment of the supervisor is its own


def test_a_command_of_a_copy_has_its_output_apart_from_its_errors(tmp_path):
    copy = PreloadedCopy(tmp_path / "var")
    code = "import sys; print('output'); print('errors', file=sys.stderr); print('more')"

    assert copy.manage("shell", "-v", "0", "--no-imports", "-c", code) == "output\nmore"
    with pytest.raises(AssertionError, match="Unknown command: 'nothing'"):
        copy.manage("nothing")
