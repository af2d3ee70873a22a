"""The web server: granian with one or more processes that share the loaded application.

`make run` and `deploy/start web` call this. HOST, PORT, WEB_WORKERS and WEB_STOP_TIMEOUT are read from the
environment.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

from django.conf import settings
from granian import _granian
from granian._signals import set_loop_signals
from granian.constants import HTTPModes, Interfaces, RuntimeModes
from granian.log import LogLevels
from granian.server.common import WORKERS_METHODS
from granian.server.mp import MPServer, WorkerProcess

from agentcms import environment
from agentcms.process import heartbeats
from agentcms.process.module_loading import loading_modules
from agentcms.server.listening import CannotListen, find_listening_address

if TYPE_CHECKING:  # the import loads Django, which the supervisor does not need
    from agentcms.gateway.application import WebApplication

APPLICATION = "agentcms.rsgi"
MAX_CONNECTIONS = 4096  # of one process; an idle or slow connection costs a file descriptor and no thread
RESPAWN_SECONDS = 0.5
SILENCE_CHECK_INTERVAL = 1.0  # seconds
SILENCE_GRACE = 5  # seconds that a process is silent after its own watchdog should have ended it

# The type stubs of granian lack arguments of these classes.
RSGIWorker: Any = _granian.RSGIWorker


class Scheduler(_granian.CallbackScheduler):
    """The object that granian calls for each request, in a thread of its pool."""

    _schedule_fn: Any

    if TYPE_CHECKING:

        def __init__(self, *arguments: object) -> None: ...


class WebServer(MPServer):
    """granian with its interface RSGI, and with a pool of threads that receive the requests, as for WSGI.

    granian itself would pass each request to the event loop, which would pass it to a thread. That takes 1 ms of CPU.
    """

    @staticmethod
    @WorkerProcess.wrap_target
    def _spawn_rsgi_worker(
        number: int,
        application: WebApplication,
        sock: Any,
        pipe: Any,
        loop: asyncio.AbstractEventLoop,
        runtime_mode: Any,
        *options: Any,
    ) -> None:
        """Serve in this process, as `MPServer` does, until a stop signal. The arguments are those of granian."""
        runtime_threads, blocking_threads, _, *connections, _, http, http1, http2, websockets, static = options[:-4]
        _, ssl, _, metrics = options[-4:]
        heartbeats.start_heartbeats(number - 1)
        stop_signal = set_loop_signals(loop)
        stopped = asyncio.Event()
        stop_signal.add_cb(lambda: loop.call_soon_threadsafe(stopped.set))
        threads = application.start(loop)
        protocol = (http, http1, http2, websockets, static, *ssl, metrics)
        worker = RSGIWorker(number, sock, pipe, runtime_threads, blocking_threads, threads, *connections, *protocol)
        scheduler = Scheduler(loop, None, None, None, None)
        scheduler._schedule_fn = application.receive
        getattr(worker, WORKERS_METHODS[runtime_mode][False])(scheduler, loop, stop_signal)
        loop.run_until_complete(stopped.wait())
        application.stop()


def kill_silent_processes(server: WebServer, timeout: float) -> None:
    """Kill each process of the server that is silent for longer than `timeout` seconds. The server replaces it."""
    while True:
        time.sleep(SILENCE_CHECK_INTERVAL)
        # A copy, because the main thread replaces processes in the list meanwhile.
        for worker in [*server.wrks]:
            pid = worker.inner.pid
            if heartbeats.silent_seconds(worker.idx, pid) > timeout:
                print(f"Process {pid} has not reacted for {timeout:.0f} s and is killed.", file=sys.stderr, flush=True)
                # Before the kill: the process that replaces it sends its heartbeats under the same index.
                heartbeats.forget(worker.idx)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def watch_processes(server: WebServer) -> None:
    """Start a thread that kills suspended processes, unless WEB_STALL_TIMEOUT is 0."""
    if settings.WEB_STALL_TIMEOUT:
        # A process that can still act ends itself before, with its tracebacks.
        arguments = (server, settings.WEB_STALL_TIMEOUT + SILENCE_GRACE)
        Thread(target=kill_silent_processes, args=arguments, daemon=True).start()


def main() -> int:
    """Serve until a stop signal; return the exit code."""
    port = environment.read_int("PORT", 8000, minimum=1)
    try:
        address = find_listening_address(environment.read_text("HOST", "127.0.0.1"), port, share_port=True)
    except CannotListen as error:
        print(error, file=sys.stderr)
        return 1
    serve_on(address, port)
    return 0


def serve_on(address: str, port: int) -> None:
    """Serve on an IP address until a stop signal."""
    allow_open_files(2 * MAX_CONNECTIONS)
    fork_processes()
    with loading_modules():
        import_module(APPLICATION)
    server = WebServer(
        f"{APPLICATION}:web_application",
        address=address,
        port=port,
        interface=Interfaces.RSGI,
        runtime_mode=RuntimeModes.mt,  # with the other mode a read takes a third more CPU
        workers=environment.read_int("WEB_WORKERS", 2, minimum=1),
        backpressure=MAX_CONNECTIONS,
        # Proxies use HTTP/1.1. With other versions, granian waits without a limit for the first bytes of a connection.
        http=HTTPModes.http1,
        websockets=False,
        log_level=LogLevels.error,
        respawn_failed_workers=True,
        respawn_interval=RESPAWN_SECONDS,
        workers_kill_timeout=environment.read_int("WEB_STOP_TIMEOUT", 30, minimum=1),
    )
    server.on_startup(lambda: watch_processes(server))
    server.serve()


def fork_processes() -> None:
    """Let the processes be forks of this one, which share what it has loaded, so that a new one is ready at once.

    Since Python 3.14, granian would start new processes on Linux. On macOS it always does, where forks are not safe.
    """
    if sys.platform == "linux":
        multiprocessing.set_start_method("fork", force=True)


def allow_open_files(number: int) -> None:
    """Raise the limit of open files of this process and its children, as far as the system allows."""
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = number if maximum == resource.RLIM_INFINITY else min(number, maximum)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, maximum))


if __name__ == "__main__":
    sys.exit(main())
