"""The sandbox of ACP agents: a hostile agent reads nothing of this machine, and connects nowhere."""

import socket
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.tools_app.acp.conftest import Conversation, create_agent
from tools_app.programs import sandbox

pytestmark = pytest.mark.django_db(transaction=True)
PROJECT = Path(__file__).parent.parent.parent.parent

has_sandbox = sandbox.is_sandbox_available()


def test_a_hostile_agent_reads_no_file_sees_no_secret_and_connects_nowhere(settings, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "hush")
    create_agent(environment={"TOKEN": "given"})
    secret = settings.DATA_DIR / "secret.txt"
    secret.write_text("hush")
    if not has_sandbox:
        assert_refused()
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        answers = Conversation().ask(
            f"open {PROJECT / 'manage.py'}",
            f"open {secret}",
            "open /etc/hostname",
            "open /proc/1/environ",
            f"connect 127.0.0.1:{server.getsockname()[1]}",
            "environment",
        )

    *refused, environment = answers
    assert [answer for answer in refused if not answer.startswith("failed:") and "hush" in answer] == []
    assert [answer.startswith("failed:") for answer in (*refused[:3], refused[4])] == [True] * 4
    assert "SECRET_KEY" not in environment.split()
    assert "TOKEN" in environment.split()


def assert_refused():
    """Assert that no agent can be enabled where bubblewrap is missing."""
    with pytest.raises(Exception, match="bubblewrap is not available"):
        create_agent(key="other", command_key="boxed")


def test_the_workspace_is_read_only_where_people_are_asked():
    row = create_agent()
    if not has_sandbox:
        assert_refused()
        return

    writable = Conversation().ask("put /workspace/a.txt", "read a.txt")
    row.permissions = "ask"
    row.save()
    (read_only,) = Conversation().ask("put /workspace/a.txt")

    assert writable == ["put", "by itself"]
    assert "Read-only file system" in read_only


def test_the_memory_of_a_process_is_limited():
    create_agent(limits={"memoryMb": 256})

    small, large = Conversation().ask("memory 10", "memory 400")

    assert small == str(10 * 1024 * 1024)
    assert large.startswith("failed:")


def test_the_proxy_connects_only_to_allowed_addresses(settings):
    if not has_sandbox:
        assert_refused()
        return
    create_agent(command_key="online")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        refused, named, direct = Conversation().ask(f"proxy {address}", "proxy 2130706433:80", f"connect {address}")
        settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
        (allowed,) = Conversation().ask(f"proxy {address}")

    assert refused.startswith("HTTP/1.1 403")
    assert named.startswith("HTTP/1.1 403")
    assert direct.startswith("failed:")
    assert allowed.startswith("HTTP/1.1 200")
