"""Stopping and killing the command, and starting it again. Tests that use the started copy come before others."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from agentcms.server.processes import PROJECT
from tests.served import Served, wait_until
from tests.served_accounts import serving_migrated


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_migrated(tmp_path_factory.mktemp("stopping") / "var", DEMO_DATA="yes", WEB_WORKERS="1") as copy:
        yield copy


@pytest.fixture
def started_copy(copy: Served) -> Served:
    """Return the copy of the module, started again if the test before has stopped it."""
    return copy if copy.process.poll() is None else copy.start()


def socket_folder(copy: Served) -> Path:
    address = (copy.data_dir / "valkey.url").read_text()
    return Path(address.removeprefix("unix://").partition("?")[0]).parent


def all_ended(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def test_the_demo_data_has_an_mcp_server_of_its_own(started_copy):
    part = "tools_app.demo.server"
    wait_until(lambda: started_copy.processes_matching(part), what="the MCP server of the demo")

    (process,) = started_copy.processes_matching(part)

    assert process in started_copy.processes()
    wait_until(lambda: [listener.laddr.ip for listener in process.net_connections()], what="its address")
    assert {listener.laddr.ip for listener in process.net_connections()} == {"127.0.0.77"}


def test_it_starts_again_with_the_same_passwords_after_everything_was_killed(started_copy):
    sockets = socket_folder(started_copy)
    passwords = (started_copy.data_dir / "demo_passwords.json").read_text()
    started_copy.kill()

    started_copy.start()

    wait_until(started_copy.responds, what="an answer")
    assert not sockets.exists()
    assert (started_copy.data_dir / "demo_passwords.json").read_text() == passwords
    assert passwords.count("password") > 1


def test_the_printed_logins_work(started_copy):
    logins = set(re.findall(r"sign in as (\w+) \((\w+)\), password (\S+)", started_copy.log_text()))

    assert {role for _, role, _ in logins} == {"superuser", "manager", "editor"}
    for username, _, password in logins:
        with httpx.Client(base_url=started_copy.base_url, timeout=60) as browser:
            browser.get("/sign-in")
            sent = {"username": username, "password": password, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
            answer = browser.post("/sign-in", data=sent)
            assert (answer.status_code, answer.headers["Location"]) == (302, "/")


def test_the_python_examples_work_with_the_demo_data(started_copy):
    key = started_copy.manage("create_api_key", "ada", "--name", "Examples").strip()
    examples = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)

    for example in examples:
        exec(compile(example, "README.md", "exec"), {"address": started_copy.base_url, "key": key})

    assert examples != []


# `test_make.py` sends SIGINT, as Ctrl-C does.
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.drill), signal.SIGHUP]
)
def test_a_signal_stops_every_process(started_copy, number):
    processes, sockets = started_copy.processes(), socket_folder(started_copy)

    started_copy.process.send_signal(number)

    assert started_copy.process.wait(20) == 0
    assert all_ended(processes)
    assert not sockets.exists()
    assert not (started_copy.data_dir / "valkey.url").exists()


def test_killing_the_supervisor_ends_every_process(started_copy):
    processes, sockets = started_copy.processes(), socket_folder(started_copy)

    started_copy.process.kill()

    wait_until(lambda: all_ended(processes), what="nobody left")
    wait_until(lambda: not sockets.exists(), what="socket folder removed")
