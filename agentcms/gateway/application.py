"""The application of a web process: it reads requests and lets Django answer them in threads.

Some threads are left for probes, which are answered while all others are busy.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections, connections
from granian.rsgi import HTTPProtocol, Scope

from access_app.authentication import is_known_sender
from agentcms.api.renderers import encode_json
from agentcms.errors import ApiError, Unavailable
from agentcms.gateway.body import BodyTimeout, IncompleteBody, RequestBody
from agentcms.gateway.environ import environ_of, set_body
from agentcms.gateway.request_queue import RequestQueue
from agentcms.gateway.responses import send_wsgi_response
from agentcms.middleware.wsgi_charset import Application, Environ
from agentcms.observability import metrics
from agentcms.observability.middleware import PROBES
from agentcms.process import shutdown
from agentcms.process.stall_watchdog import StallWatchdog
from runs_app.engine import lifecycle

log = logging.getLogger(__name__)

INCOMPLETE_BODY_MESSAGE = (
    "The request body is incomplete or not valid. Send all of it, without trailers: "
    "as many bytes as Content-Length says, or with Transfer-Encoding: chunked all chunks and an empty last one."
)
PROBE_THREADS = 4  # they are left for probes while all requests that the queue allows are handled
SENDER_THREADS = 4  # they check who sends a slow body, also while all other threads are busy


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
        # Django runs in threads: under ASGI it took five to seven times the CPU for each request.
        self.executor = ThreadPoolExecutor(threads, "request")
        self.senders = ThreadPoolExecutor(SENDER_THREADS, "sender")
        self.probes = ThreadPoolExecutor(1, "probe")
        # The event loop has only weak references to tasks: without this one, a task could disappear while it waits.
        self.bodies: set[asyncio.Task[None]] = set()
        metrics.reserve_files()
        shutdown.install_signal_listener()
        lifecycle.start_web_process()
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
                self.receive_body(environ, exchange)
            elif environ["PATH_INFO"] in PROBES:
                self.respond(environ, exchange)
            else:
                self.queue.run(partial(self.respond, environ, exchange))
        except Exception:
            log.exception("A request could not be received.")
            exchange.done()

    def respond(self, environ: Environ, exchange: Exchange) -> None:
        send_wsgi_response(self.wsgi_application, environ, exchange.proto, self.loop)
        exchange.done()

    def receive_body(self, environ: Environ, exchange: Exchange) -> None:
        """Handle a request whose body arrives at once. Let the event loop read any other body."""
        path = environ["PATH_INFO"]
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if settings.UPLOAD_PATHS.fullmatch(path):
            limit = settings.UPLOAD_MAX_BYTES
        rate = settings.REQUEST_BODY_MIN_RATE
        body = RequestBody(exchange.proto, declared_length(environ), limit, settings.REQUEST_BODY_TIMEOUT, rate)
        try:
            is_read = body.read_in_thread()
        except (IncompleteBody, OSError) as error:
            refuse_request(environ, exchange.proto, refusal_of(error))
            return
        if is_read:
            set_body(environ, body.stream, body.length)
            self.queue.run(partial(self.respond, environ, exchange))
        else:
            self.loop.call_soon_threadsafe(self.start_reading, environ, exchange, body)

    def start_reading(self, environ: Environ, exchange: Exchange, body: RequestBody) -> None:
        task = self.loop.create_task(self.read_and_respond(environ, exchange, body))
        self.bodies.add(task)
        task.add_done_callback(self.bodies.discard)

    async def read_and_respond(self, environ: Environ, exchange: Exchange, body: RequestBody) -> None:
        """Read the body, then respond in a thread. A slow body of an unknown sender is not read."""
        # Of a copy, to which Django adds keys for its own request.
        is_known = partial(self.loop.run_in_executor, self.senders, check_sender, dict(environ))
        try:
            await body.read(may_continue=is_known)
        except (BodyTimeout, IncompleteBody, OSError) as error:
            refuse_request(environ, exchange.proto, refusal_of(error))
        except Exception:
            log.exception("A request body could not be read.")
            exchange.done()
        else:
            set_body(environ, body.stream, body.length)
            # In a thread: `run` handles the request, and this is the thread of the event loop.
            self.executor.submit(self.queue.run, partial(self.respond, environ, exchange))


def has_body(environ: Environ) -> bool:
    """Return True if the request declares a body."""
    return "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ


def declared_length(environ: Environ) -> int | None:
    """Return the length that the request declares, or None. The server refuses what is not a number."""
    return int(environ["CONTENT_LENGTH"]) if "CONTENT_LENGTH" in environ else None


def check_sender(environ: Environ) -> bool:
    """Return True if a slow body may be read. Without the database it may not: the application answers that."""
    close_old_connections()
    try:
        return is_known_sender(environ)
    except DatabaseError:
        log.warning("The sender of a slow request could not be checked.", exc_info=True)
        return False
    finally:
        # An open connection would occupy a place of the pool, and after a restart of the database it would not work.
        connections.close_all()


def refusal_of(error: Exception) -> ApiError:
    """Return the error for a body that was not read: too slow, incomplete, or (OSError) not stored."""
    if isinstance(error, BodyTimeout):
        rate = f"{settings.REQUEST_BODY_MIN_RATE:,}"
        message = f"The request body did not arrive in time. Send at least {rate} bytes a second."
        return ApiError(408, message, "request_timeout")
    if isinstance(error, IncompleteBody):
        return ApiError(400, INCOMPLETE_BODY_MESSAGE, "incomplete_body")
    log.error("A request body could not be stored.", exc_info=error)  # a full disk, or too many open files
    return Unavailable()


def refuse_request(environ: Environ, protocol: HTTPProtocol, error: ApiError) -> None:
    """Refuse a request whose body did not arrive. The server then closes the connection."""
    # Counted here, because the middleware that counts requests never gets this one.
    metrics.REQUESTS.labels("other", "none", str(error.status)).inc()
    if environ["PATH_INFO"].startswith("/api/"):
        content_type, text = "application/json", encode_json(error.body)
    else:
        content_type, text = "text/plain; charset=utf-8", error.error.encode()
    headers = [("Content-Type", content_type), ("Content-Length", str(len(text))), ("Connection", "close")]
    headers += error.headers.items()
    protocol.response_bytes(error.status, headers, text)
