"""The proxy of programs, without a sandbox: what it answers to requests that it does not pass on."""

import asyncio
from ipaddress import ip_address, ip_network

import pytest

from tools_app.programs import proxy
from tools_app.programs.proxy import AddressProxy


async def status_of(request, idle_connections=0):
    """Return the first line of the answer to a request, beside so many connections that send nothing."""
    server = await AddressProxy.start()
    try:
        writers = [(await asyncio.open_unix_connection(server.path))[1] for _ in range(idle_connections)]
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(f"{request}\r\n\r\n".encode())
        answer = await reader.readuntil(b"\r\n")
        for opened in (*writers, writer):
            opened.close()
        return answer.decode().strip()
    finally:
        await server.close()


@pytest.mark.parametrize(
    "request_line", ["GET http://example.com/ HTTP/1.1", "CONNECT example.com HTTP/1.1", "CONNECT"]
)
def test_other_requests_are_not_allowed(request_line):
    assert asyncio.run(status_of(request_line)) == "HTTP/1.1 405 Method Not Allowed"


def test_the_other_addresses_of_a_host_are_tried(settings, monkeypatch):
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]

    async def resolve(host, port):
        return [ip_address("127.0.0.2"), ip_address("127.0.0.1")]

    async def connect():
        async with await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0) as server:
            return await status_of(f"CONNECT example.com:{server.sockets[0].getsockname()[1]} HTTP/1.1")

    monkeypatch.setattr(proxy, "resolve_host", resolve)

    assert asyncio.run(connect()) == "HTTP/1.1 200 Connection established"


def test_a_program_with_many_connections_may_try_again(monkeypatch):
    monkeypatch.setattr(proxy, "MAX_CONNECTIONS", 2)

    answers = [asyncio.run(status_of("CONNECT 10.0.0.1:80 HTTP/1.1", count)) for count in (1, 2)]

    assert answers == ["HTTP/1.1 403 Forbidden", "HTTP/1.1 503 Service Unavailable"]
