"""Reading a request body under a deadline."""

import asyncio

import pytest

from agentcms.gateway import body
from agentcms.gateway.body import BodyTimeout, IncompleteBody, RequestBody


class Connection:
    """A connection that sends pieces, each after so many seconds. The end is an empty piece, as in granian."""

    def __init__(self, *pieces: tuple[float, bytes]) -> None:
        self.pieces = [*pieces, (0, b"")]

    def __aiter__(self):
        return self

    def __anext__(self):
        if not self.pieces:
            raise StopAsyncIteration
        return asyncio.ensure_future(self.next_piece())

    async def next_piece(self):
        seconds, piece = self.pieces.pop(0)
        await asyncio.sleep(seconds)
        return piece


def read(*pieces, declared=None, limit=100, timeout=0.5, min_rate=1000, may_continue=True):
    """Read a body. Return it, its length, and how often the sender was checked."""
    checks = []

    async def check():
        checks.append(True)
        return may_continue

    async def run():
        received = RequestBody(Connection(*pieces), declared, limit, timeout, min_rate)
        await received.read(check)
        return received.stream.read(), received.length, len(checks)

    return asyncio.run(run())


def test_a_body_is_joined():
    assert read((0, b"ab"), (0, b"cd")) == (b"abcd", 4, 0)


def test_nothing_is_read_after_the_declared_length():
    assert read((0, b"ab"), (60, b"more"), declared=2) == (b"ab", 2, 0)


def test_a_body_that_ends_early_is_incomplete():
    with pytest.raises(IncompleteBody):
        read((0, b"ab"), declared=9)


def test_a_chunked_body_with_an_error_is_incomplete():
    error = (0, b"")  # as granian passes it on

    with pytest.raises(IncompleteBody):
        read((0, b"ab"), error)


def test_the_rest_of_a_body_above_the_limit_is_read_and_dropped():
    # Clients that do not read before they have sent everything get no response otherwise.
    content, length, _ = read(*[(0, b"x" * 60)] * 5, limit=100)

    assert (len(content), length) == (120, 300)


def test_a_body_far_above_the_limit_is_read_to_its_end_if_its_sender_is_known():
    pieces = [(0, b"x" * 16 * 1024**2)] * 6

    content, length, checks = read(*pieces, declared=6 * 16 * 1024**2, limit=100)

    assert (len(content), length, checks) == (16 * 1024**2, 6 * 16 * 1024**2, 1)


def test_a_body_far_above_the_limit_is_not_read_if_its_sender_is_unknown():
    pieces = [(0, b"x" * 16 * 1024**2)] * 6

    with pytest.raises(OSError, match="not read"):
        read(*pieces, (60, b"x"), limit=100, may_continue=False)


def test_reading_stops_at_a_limit_of_what_is_dropped(monkeypatch):
    monkeypatch.setattr(body, "MAX_DROPPED", 1000)

    assert read((0, b"x" * 200), (0, b"x" * 1000), (60, b"x"), limit=100)[1] == 1200


def test_a_body_above_the_limit_that_arrives_slowly_is_not_waited_for():
    assert read((0, b"x" * 200), (60, b"x"), limit=100)[1] == 200


def test_a_slow_sender_is_checked_once():
    assert read((0.3, b"a"), (0.3, b"b"), timeout=5) == (b"ab", 2, 1)


def test_the_slow_body_of_an_unknown_sender_is_not_read():
    with pytest.raises(OSError, match="not read"):
        read((0.3, b"a"), declared=5, may_continue=False)


def test_a_body_that_does_not_arrive_in_time_is_refused():
    with pytest.raises(BodyTimeout):
        read((0, b"a"), (60, b"b"))


def test_received_bytes_extend_the_deadline():
    pieces = [(0.2, b"x" * 20)] * 6

    assert read(*pieces, limit=1000, timeout=0.5, min_rate=20)[1] == 120
