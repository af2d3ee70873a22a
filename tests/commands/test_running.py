"""Starting the command, its errors and restarts of its processes."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import httpx
import psutil
import pytest

from agentcms.server.processes import PROJECT
from tests.served import TEST_VARIABLES, Served, free_port, serving, wait_until


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start one copy for all tests of this module."""
    with serving(tmp_path_factory.mktemp("running") / "var") as copy:
        yield copy


def outside_tests() -> dict[str, str]:
    """Return the environment of a command that reads the settings of the application."""
    return {name: value for name, value in os.environ.items() if name not in TEST_VARIABLES}


def test_it_responds_at_the_printed_url(running):
    answer = httpx.get(running.base_url, timeout=60)

    assert answer.status_code < 500
    assert f"Agent CMS is at {running.base_url}/" in running.log_text()


def test_the_printed_command_creates_the_first_user(running):
    """Without users, the terminal and the sign-in page name the command. With one, the page does not."""
    (command,) = re.findall(
        r"There are no users yet\. Create the first one in another .*\n.*\|   (.*)", running.log_text()
    )
    before = httpx.get(f"{running.base_url}/sign-in", timeout=60).text
    command = command.replace(".venv/bin/python", shlex.quote(sys.executable)).replace("NAME", "first")
    terminal = {"PATH": os.environ["PATH"], "AGENTCMS_PASSWORD": "a long enough password"}

    done = subprocess.run(
        ["sh", "-c", command], env=terminal, cwd=PROJECT, capture_output=True, text=True, timeout=120
    )

    assert done.stderr == "Created first.\n"
    assert "manage.py create_user NAME --superuser" in before
    assert "create_user" not in httpx.get(f"{running.base_url}/sign-in", timeout=60).text


def test_it_listens_on_localhost_only(running):
    listening = {
        line.laddr.ip
        for process in running.processes()
        for line in process.net_connections()
        if line.status == psutil.CONN_LISTEN
    }

    assert listening == {"127.0.0.1"}


def test_without_demo_data_there_is_no_mcp_server(running):
    assert running.processes_matching("agentcms.server.worker")
    assert not running.processes_matching("tools_app.demo.server")


def test_a_second_start_on_the_same_data_names_the_running_process(running):
    second = Served(running.data_dir)
    environment = {**second.environment, "DATA_DIR": str(running.data_dir)}

    second_start = subprocess.run(
        [sys.executable, "-m", "agentcms.server.run"],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert second_start.returncode == 1
    assert f"is in use by process {running.process.pid}" in second_start.stderr
    wait_until(running.responds, what="an answer")


def test_a_port_in_use_is_reported_in_one_sentence(running, tmp_path):
    environment = {**running.environment, "DATA_DIR": str(tmp_path / "var")}

    second_start = subprocess.run(
        [sys.executable, "-m", "agentcms.server.run"],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert second_start.returncode == 1
    assert f"Port {running.port} on 127.0.0.1 cannot be used" in second_start.stderr
    assert "Traceback" not in second_start.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"MEMORY_EMBEDDER": "x"}, "MEMORY_EMBEDDER is 'x'. Set local/"),
        ({"RUN_ENGINE": "inngest"}, "RUN_ENGINE=inngest needs INNGEST_EVENT_KEY. docs/inngest.md"),
        ({"TRACE_URL_TEMPLATE": "https://x/y"}, "Write the address of a trace: https://"),
    ],
)
def test_a_setting_that_cannot_be_used_stops_the_start(tmp_path, variables, message):
    environment = outside_tests() | {"DATA_DIR": str(tmp_path / "var"), "PORT": str(free_port()), **variables}
    command = [sys.executable, "-m", "agentcms.server.run"]

    result = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=120)

    assert result.returncode == 1
    assert message in result.stdout
    assert "Traceback" not in result.stdout + result.stderr


@pytest.mark.parametrize(("variables", "missing"), [({}, "INNGEST_EVENT_KEY"), ({"DEBUG": "yes"}, None)])
def test_the_check_of_all_settings_names_a_missing_key_of_inngest(tmp_path, variables, missing):
    environment = outside_tests() | {"DATA_DIR": str(tmp_path), "RUN_ENGINE": "inngest", **variables}
    command = [sys.executable, "manage.py", "check"]

    result = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=120)

    assert result.returncode == (missing is not None)
    assert "Traceback" not in result.stderr
    assert missing is None or f"RUN_ENGINE=inngest needs {missing}." in result.stderr


@pytest.mark.parametrize(("argument", "code", "output"), [("--help", 0, "usage: "), ("--prot", 2, "--prot")])
def test_help_and_unknown_arguments_start_nothing(tmp_path, argument, code, output):
    command = [sys.executable, "-m", "agentcms.server.run", argument]
    environment = {**os.environ, "DATA_DIR": str(tmp_path / "var")}

    result = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=120)

    assert result.returncode == code
    assert output in result.stdout + result.stderr
    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize("part", ["agentcms.server.web", "agentcms.server.worker", "valkey-server"])
def test_a_dead_child_process_is_restarted(running, part):
    before = {process.pid for process in running.processes_matching(part)}

    wait_until(lambda: running.processes_matching(part), what=part)
    running.processes_matching(part)[0].kill()

    wait_until(lambda: {process.pid for process in running.processes_matching(part)} - before, what=f"another {part}")
    wait_until(running.responds, what="an answer")


def test_a_dead_web_process_is_replaced(running):
    main, *workers = sorted(
        running.processes_matching("agentcms.server.web"), key=lambda process: process.create_time()
    )

    workers[0].kill()

    wait_until(lambda: len([one for one in main.children() if one.is_running() and one != workers[0]]) == len(workers))
    wait_until(running.responds, what="an answer")


def test_two_copies_run_side_by_side(running, served):
    assert served.port != running.port
    wait_until(served.responds, what="an answer of the second")
    wait_until(running.responds, what="an answer of the first")
