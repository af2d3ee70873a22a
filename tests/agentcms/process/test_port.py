"""The port of the web server, which another program may take while the database is prepared."""

import socket

import pytest

from agentcms.server.run import CannotStart, ServerConfig, serve


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

        with pytest.raises(CannotStart, match="cannot be used: Address already in use"):
            serve(config, supervisor)

    assert supervisor.started == []
