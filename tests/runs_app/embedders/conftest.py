"""A server on this machine that embeds."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from threading import Thread

import pytest

from runs_app.providers import cached_providers


@pytest.fixture
def serving_embedder(settings, monkeypatch) -> Callable[..., AbstractContextManager[ThreadingHTTPServer]]:
    """Return a function that serves with a handler, which notes its requests. `configure` sets up its providers."""

    @contextmanager
    def serve(
        handler: type[BaseHTTPRequestHandler], configure: Callable[[str], None]
    ) -> Iterator[ThreadingHTTPServer]:
        monkeypatch.setattr(handler, "requests", [])
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
            configure(f"http://127.0.0.1:{server.server_port}")
            cached_providers.invalidate()
            yield server
            server.shutdown()
        cached_providers.invalidate()

    return serve
