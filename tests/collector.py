"""An OTLP receiver over HTTP, which the spans of a test are sent to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """The bodies that were received."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.url = ""

    @property
    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span for request in requests for kind in request.resource_spans for scope in kind.scope_spans
            for span in scope.spans
        ]  # fmt: skip

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]

    def tree(self) -> set[tuple[str, str]]:
        """Return the name of each span with that of its parent, which is blank for the first of a trace."""
        names = {span.span_id: span.name for span in self.spans}
        return {(names.get(span.parent_span_id, "(unknown)" if span.parent_span_id else ""), span.name)
                for span in self.spans}  # fmt: skip


def attributes(span: Any) -> dict[str, Any]:
    """Return the attributes of a received span as plain values."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a receiver."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.headers.append(self.headers)
            collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
