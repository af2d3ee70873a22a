"""The client of the load: as little as can be, because it shares the cores with what is measured."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from typing import Any

Request = bytes


class Line:
    """A kept-alive connection that sends prepared bytes and reads whole answers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Request) -> tuple[int, bytes]:
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

    def close(self) -> None:
        self.socket.close()

    def receive(self) -> bytes:
        if not (chunk := self.socket.recv(262144)):
            raise ConnectionError("The server closed the connection.")
        return chunk


class Api:
    """Requests of one key, as bytes."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.head = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"

    def get(self, path: str) -> Request:
        return f"GET {path} {self.head}\r\n".encode()

    def patch(self, path: str, body: dict[str, Any]) -> Request:
        text = json.dumps(body)
        kind = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        return f"PATCH {path} {self.head}{kind}\r\n{text}".encode()

    def json(self, path: str) -> Any:
        with closing(Line(self.port)) as line:
            status, body = line.ask(self.get(path))
        if status != 200:
            raise RuntimeError(f"{path} answered {status}: {body[:200]!r}")
        return json.loads(body)
