"""Messages of agents that send without end, or that ask and read no answer."""

import asyncio
import json

import pytest

from tests.tools_app.acp.conftest import Conversation, create_agent
from tools_app.acp.connection.transport import LineTransport
from tools_app.acp.errors import AcpError


class Pipe:
    """A pipe that takes all that is written."""

    def write(self, data):
        return None

    async def drain(self):
        return None


def request(number):
    return json.dumps({"id": number, "method": "fs/read_text_file"}).encode() + b"\n"


async def transport_with(data):
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return LineTransport(reader, Pipe())


def test_lines_without_end_leave_time_to_others():
    async def receive():
        transport, turns = await transport_with(b"\n" * 1000 + b'{"method": "a"}\n'), []

        async def take_turns():
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        other = asyncio.ensure_future(take_turns())
        message = await transport.receive()
        other.cancel()
        return message, len(turns)

    message, turns = asyncio.run(receive())

    assert message == {"method": "a"}
    assert turns >= 1000


def test_too_many_lines_end_the_connection(monkeypatch):
    monkeypatch.setattr(LineTransport, "MAX_LINES", 100)

    async def receive():
        transport = await transport_with(b"\n" * 100 + b'{"method": "a"}\n')
        return await transport.receive()

    assert asyncio.run(receive()) is None


def test_only_so_many_requests_are_read_as_are_answered():
    async def receive():
        transport = await transport_with(b"".join(map(request, range(20))))
        read = [await transport.receive() for _ in range(LineTransport.MAX_OPEN_REQUESTS)]
        following = asyncio.ensure_future(transport.receive())
        await asyncio.wait([following], timeout=0.1)
        waited = not following.done()
        await transport.send({"id": 0, "result": None})
        return len(read), waited, await following

    assert asyncio.run(receive()) == (16, True, json.loads(request(16)))


@pytest.mark.django_db(transaction=True)
def test_an_agent_that_asks_and_reads_no_answer_is_stopped():
    create_agent(limits={"promptSeconds": 3})

    async def converse():
        conversation = Conversation()
        await conversation.send("write a.txt " + "x" * 500_000)
        await conversation.send("deafen a.txt")

    with pytest.raises(AcpError, match="did not finish within 3 seconds"):
        asyncio.run(asyncio.wait_for(converse(), 60))
