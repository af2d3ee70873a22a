"""The process between the worker and a program: it sets limits, and ends the program with the worker.

It is started as a script, inside the sandbox or without one, and imports only the standard library:

    python -I -S launcher.py '{"folder": "/", "limits": {"NPROC": 64}, "proxy": "", "parent": 0}' argv …

`proxy` is the path of a Unix socket. What the program sends to HTTP_PROXY goes there. `parent` is the ID of the
worker. With it, this process waits, and kills all that the program started once either ends, or once there are more
than `processes`: the system limits no processes of root, and counts all processes of other users. Otherwise it becomes
the program.
"""

import ctypes
import json
import os
import resource
import signal
import socket
import sys
import threading
import time

COUNT_INTERVAL = 0.1  # seconds
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> None:
    options, argv = json.loads(sys.argv[1]), sys.argv[2:]
    for name, value in options["limits"].items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, most = resource.getrlimit(kind)
        # Only root may exceed the hard limit that this process has already.
        limit = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (limit, limit))
    os.chdir(options["folder"])
    if options["proxy"]:
        serve_proxy(options["proxy"])
    if options["parent"]:
        supervise(argv, options["parent"], options["processes"])
    os.execvp(argv[0], argv)  # noqa: S606  a program of the operator


def supervise(argv: list[str], parent: int, most: int) -> None:
    """Run a program until it or the parent of this process ends, and kill all that it started. Never return.

    With `most`, also kill it once it has more processes and threads.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # what the program leaves behind becomes a child of this process
    # The exit code is 128 and the number of the signal, as a shell reports it; so is 137 for SIGKILL below.
    signal.signal(signal.SIGTERM, lambda *_: stop_all(143))
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # The worker may have ended before the line above, which only notices later ends.
    if os.getppid() != parent:
        os._exit(143)
    child = os.fork()
    if child == 0:
        os.execvp(argv[0], argv)  # noqa: S606
    for descriptor in (0, 1):
        os.close(descriptor)  # the worker notices the end of the program by the end of its output
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG if most else 0)
        if ended == child:
            stop_all(os.waitstatus_to_exitcode(status) % 256)
        if ended == 0:
            stop_if_many(most)
            time.sleep(COUNT_INTERVAL)


def stop_if_many(most: int) -> None:
    """Kill all descendants of this process, and end it, if they and their threads are more than allowed."""
    waiting, count = child_ids(os.getpid()), 0
    while waiting and count <= most:
        process = waiting.pop()
        count += len(thread_ids(process))
        waiting += child_ids(process)
    if count > most:
        os.write(2, b"The program had too many processes and was ended.\n")
        stop_all(137)


def stop_all(code: int) -> None:
    """Kill all descendants of this process, and end it."""
    while children := child_ids(os.getpid()):
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)  # its own children become ours
    os._exit(code)


def child_ids(process: int) -> list[int]:
    """Return the processes that the threads of a process have started."""
    ids: list[int] = []
    for thread in thread_ids(process):
        try:
            with open(f"/proc/{process}/task/{thread}/children") as file:
                ids += map(int, file.read().split())
        except OSError:  # it has ended
            continue
    return ids


def thread_ids(process: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:  # it has ended
        return []


def serve_proxy(path: str) -> None:
    """Fork a process that passes connections to a local port on to a Unix socket, and set the variables of proxies."""
    server = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{server.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
        os.environ[name] = address
    program = os.getpid()
    if os.fork() != 0:
        server.close()
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The program may have ended before the line above, which only notices later ends.
    if os.getppid() != program:
        os._exit(0)
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    while True:
        accepted, _ = server.accept()
        outside = socket.socket(socket.AF_UNIX)
        try:
            outside.connect(path)
        except OSError:
            accepted.close()
            continue
        for pair in ((accepted, outside), (outside, accepted)):
            threading.Thread(target=relay_socket, args=pair, daemon=True).start()


def relay_socket(source: socket.socket, target: socket.socket) -> None:
    """Send what one socket receives to another, until the first ends."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for end, how in ((source, socket.SHUT_RD), (target, socket.SHUT_WR)):
            try:
                end.shutdown(how)
            except OSError:
                continue


if __name__ == "__main__":
    main()
