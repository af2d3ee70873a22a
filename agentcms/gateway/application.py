"""The application of a web process: it reads requests and lets Django answer them in threads."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from django.conf import settings
from granian.rsgi import HTTPProtocol, Scope

from access_app.authentication import is_known_sender
from agentcms.api.renderers import encode_json
from agentcms.errors import ApiError
from agentcms.gateway.body import BodyTimeout, RequestBody
from agentcms.gateway.environ import environ_of, set_body
from agentcms.gateway.request_queue import RequestQueue
from agentcms.gateway.responses import respond
from agentcms.middleware.wsgi_charset import Application, Environ
from agentcms.observability import metrics
from agentcms.observability.middleware import PROBES
from agentcms.process import shutdown
from agentcms.process.stall_watchdog import StallWatchdog

log = logging.getLogger(__name__)

PROBE_THREADS = 4  # they are left for probes while all requests that the queue allows are handled


class Exchange(Protocol):
    """A request and its response, as granian passes them."""

    scope: Scope
    proto: HTTPProtocol

    def done(self) -> None:
        """End the exchange. Without a response, the server sends a 500."""


class WebApplication:
    """The application of a web process."""

    def __init__(self, wsgi_application: Application) -> None:
        self.wsgi_application = wsgi_application

    def start(self, loop: asyncio.AbstractEventLoop) -> int:
        """Prepare this process before the event loop runs. Return how many threads `receive` needs."""
        self.loop = loop
        threads = settings.WEB_THREADS + settings.RUN_STREAMS
        self.queue = RequestQueue(threads)
        self.executor = ThreadPoolExecutor(threads, "request")
        self.probes = ThreadPoolExecutor(1, "probe")
        self.bodies: set[asyncio.Task[None]] = set()
        metrics.reserve_files()
        shutdown.install_signal_listener()
        self.watchdog = StallWatchdog(settings.WEB_STALL_TIMEOUT, self.probes)
        self.watchdog.start(loop)
        return threads + PROBE_THREADS

    def stop(self) -> None:
        """Clean up before the process ends."""
        self.watchdog.stop()

    def receive(self, exchange: Exchange) -> None:
        """Handle a request in this thread, or read its body first, without a thread."""
        try:
            scope = exchange.scope
            environ = environ_of(scope)
            if has_body(environ):
                self.loop.call_soon_threadsafe(self.start_reading, environ, exchange)
            elif environ["PATH_INFO"] in PROBES:
                self.respond(environ, exchange)
            else:
                self.queue.run(partial(self.respond, environ, exchange))
        except Exception:
            log.exception("A request could not be received.")
            exchange.done()

    def respond(self, environ: Environ, exchange: Exchange) -> None:
        respond(self.wsgi_application, environ, exchange.proto)
        exchange.done()

    def start_reading(self, environ: Environ, exchange: Exchange) -> None:
        task = self.loop.create_task(self.read_and_respond(environ, exchange))
        self.bodies.add(task)
        task.add_done_callback(self.bodies.discard)

    async def read_and_respond(self, environ: Environ, exchange: Exchange) -> None:
        """Read the body, then respond in a thread. A slow body of an unknown sender is not read."""
        path = environ["PATH_INFO"]
        limit = settings.UPLOAD_MAX_BYTES if path in settings.UPLOAD_PATHS else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        rate = settings.REQUEST_BODY_MIN_RATE
        body = RequestBody(exchange.proto, declared_length(environ), limit, settings.REQUEST_BODY_TIMEOUT, rate)
        is_known = partial(self.loop.run_in_executor, self.executor, is_known_sender, dict(environ))
        try:
            await body.read(may_continue=is_known)
        except BodyTimeout:
            refuse_slow_body(environ, exchange.proto)
            exchange.done()
        else:
            set_body(environ, body.file, body.length)
            self.executor.submit(self.queue.run, partial(self.respond, environ, exchange))


def has_body(environ: Environ) -> bool:
    """Return True if the request declares a body. Over HTTP/2 it need not."""
    return (
        "CONTENT_LENGTH" in environ
        or "HTTP_TRANSFER_ENCODING" in environ
        or (environ["SERVER_PROTOCOL"] == "HTTP/2" and environ["REQUEST_METHOD"] not in ("GET", "HEAD"))
    )


def declared_length(environ: Environ) -> int | None:
    """Return the length that the request declares, or None. The server refuses what is no number."""
    return int(environ["CONTENT_LENGTH"]) if "CONTENT_LENGTH" in environ else None


def refuse_slow_body(environ: Environ, protocol: HTTPProtocol) -> None:
    """Answer 408: the body did not arrive in time. The server then closes the connection."""
    metrics.REQUESTS.labels("other", "none", "408").inc()
    message = (
        f"The request body did not arrive in time. Send at least {settings.REQUEST_BODY_MIN_RATE:,} bytes a second."
    )
    if environ["PATH_INFO"].startswith("/api/"):
        content_type, text = "application/json", encode_json(ApiError(408, message, "request_timeout").body)
    else:
        content_type, text = "text/plain; charset=utf-8", message.encode()
    headers = [("Content-Type", content_type), ("Content-Length", str(len(text))), ("Connection", "close")]
    protocol.response_bytes(408, headers, text)
