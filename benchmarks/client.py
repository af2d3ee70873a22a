"""A minimal HTTP client for the load. It shares the cores with the servers, so it must use little CPU."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

Request = bytes


class Connection:
    """A keep-alive connection that sends encoded requests and reads complete responses."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: Request) -> tuple[int, bytes]:
        """Send a request. Return the status and the body of the response."""
        self.socket.sendall(request)
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.receive()
        head = data[:end].lower()
        status = int(head[9:12])
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        while len(data) < end + 4 + length:
            data += self.receive()
        return status, data[end + 4 :]

    def stream(self, request: Request) -> Iterator[bytes]:
        """Send a request. Yield the chunks of a chunked response as they arrive; raise ConnectionError for another."""
        self.socket.sendall(request)
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.receive()
        if b"transfer-encoding: chunked" not in data[:end].lower():
            raise ConnectionError(f"The response is not a stream: {data[:500]!r}")
        data = data[end + 4 :]
        while True:
            while (end := data.find(b"\r\n")) < 0:
                data += self.receive()
            length, data = int(data[:end], 16), data[end + 2 :]
            while len(data) < length + 2:
                data += self.receive()
            if not length:
                return
            yield data[:length]
            data = data[length + 2 :]

    def close(self) -> None:
        self.socket.close()

    def receive(self) -> bytes:
        if not (chunk := self.socket.recv(262144)):
            raise ConnectionError("The server closed the connection.")
        return chunk


class RequestEncoder:
    """Encoder of API requests with one API key."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.head = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"

    def get(self, path: str) -> Request:
        return f"GET {path} {self.head}\r\n".encode()

    def patch(self, path: str, body: dict[str, Any]) -> Request:
        return self._with_body("PATCH", path, body)

    def post(self, path: str, body: dict[str, Any]) -> Request:
        return self._with_body("POST", path, body)

    def _with_body(self, method: str, path: str, body: dict[str, Any]) -> Request:
        text = json.dumps(body)
        content_headers = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        return f"{method} {path} {self.head}{content_headers}\r\n{text}".encode()

    def fetch_json(self, path: str) -> Any:
        """Send a GET on a connection of its own. Return the decoded body; raise RuntimeError for an error status."""
        with closing(Connection(self.port)) as connection:
            status, body = connection.send(self.get(path))
        if status != 200:
            raise RuntimeError(f"{path} returned {status}: {body[:200]!r}")
        return json.loads(body)
