"""The address and port of the web server. Another program may take the port while the database is prepared."""

import socket

import pytest

from agentcms.server.listening import CannotListen, find_listening_address
from agentcms.server.run import ServerConfig, serve


class Preparing:
    """A supervisor whose preparation ends when another program listens on the port."""

    def __init__(self, other):
        self.other = other
        self.started = []

    def run_to_end(self, child):
        self.other.listen()
        return 0

    def keep_running(self, child):
        self.started.append(child.name)


def test_a_port_that_was_taken_during_the_preparation_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        supervisor = Preparing(other)
        config = ServerConfig(tmp_path, "127.0.0.1", other.getsockname()[1], 1)

        with pytest.raises(CannotListen, match="cannot be used: Address already in use"):
            serve(config, supervisor)

    assert supervisor.started == []


def test_a_host_name_is_used_by_its_address():
    assert find_listening_address("localhost", 0, share_port=True) in ("127.0.0.1", "::1")


@pytest.mark.parametrize("host", ["http://127.0.0.1", "[::1]", "127.0.0.1:8000", "a..b", "203.0.113.7", "x" * 300])
def test_a_host_on_which_the_server_cannot_listen_is_named(host):
    with pytest.raises(CannotListen, match=r"^HOST is "):
        find_listening_address(host, 0, share_port=True)


def test_the_port_of_a_program_that_does_not_share_it_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(CannotListen, match=rf"^Port {port} on 127.0.0.1 cannot be used: Address already in use"):
            find_listening_address("127.0.0.1", port, share_port=True)
