"""An MCP server in this process, whose list of tools a test changes."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self.answer(202, b"")
            return
        outcome = self.outcome(message)
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode())

    def outcome(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                version = message["params"]["protocolVersion"]
                server = {"name": "scripted", "version": "1"}
                return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
            case "tools/list":
                return {"result": {"tools": self.server.tools}}  # type: ignore[attr-defined]
        return {"error": {"code": -32601, "message": "Method not found"}}

    def do_GET(self) -> None:
        self.answer(405, b"")

    do_DELETE = do_GET

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextlib.contextmanager
def scripted_server(host: str, *tools: dict[str, Any]) -> Iterator[ThreadingHTTPServer]:
    """Start a server with these tools. Its attribute `tools` may be changed, and `url` is its address."""
    with ThreadingHTTPServer((host, 0), Handler) as server:
        server.daemon_threads = True
        server.tools, server.url = [*tools], f"http://{host}:{server.server_port}/mcp"  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
