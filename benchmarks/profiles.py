"""Where a web process spends its CPU, by package: the application without a server in front, sampled as it works.

    python -m benchmarks.profiles KEY     on the filled database that the environment names; the last line is JSON

A sample is taken every few milliseconds of CPU; time in C counts for the Python that called it. The database's own CPU
is not in it.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any

from agentcms.wsgi import application
from benchmarks import load
from benchmarks.client import Api, Request

PROJECT = Path(__file__).resolve().parent.parent
EVERY = 0.004  # seconds of CPU; kernels do not count finer
MOST_TOLD = 8
OURSELVES = "benchmarks"
SPLIT = {"django"}  # packages so large that their parts are told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("key")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of CPU for each operation")
    options = parser.parse_args()
    signal.set_wakeup_fd(-1)  # or the thread that waits for the end would wake at every sample
    api = Inside(options.key)
    for name in ("agent-000000", "agent-000001"):
        for number in range(50):
            ask(api.patch(f"/api/stored/agents/{name}", {"instructions": f"{load.TEXT} filled {number}"}))
    operations = load.operations(api, options.agents)
    print(json.dumps({name: profile(act, options.seconds) for name, act in operations.items()}))


class Inside(Api):
    """Requests that are answered in this process."""

    def __init__(self, key: str) -> None:
        super().__init__(80, key)

    def json(self, path: str) -> Any:
        return json.loads(ask(self.get(path)))


def ask(request: Request) -> bytes:
    """What the application answers to the bytes of a request."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    method, target, protocol = first.split(" ")
    path, _, query = target.partition("?")
    said = {name.upper().replace("-", "_"): value for name, value in (field.split(": ", 1) for field in fields)}
    environ: dict[str, Any] = {f"HTTP_{name}": value for name, value in said.items()}
    environ |= {name: said[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if name in said}
    environ |= {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SERVER_PROTOCOL": protocol}
    environ |= {"SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "REMOTE_ADDR": "127.0.0.1", "SCRIPT_NAME": ""}
    environ |= {"wsgi.url_scheme": "http", "wsgi.input": BytesIO(body)}
    status: list[str] = []
    chunks = application(environ, lambda line, *rest: status.append(line))
    answer = b"".join(chunks)
    if close := getattr(chunks, "close", None):
        close()
    if not status[0].startswith("200"):
        raise RuntimeError(f"{first} answered {status[0]}: {answer[:200]!r}")
    return answer


def profile(act: load.Operation, seconds: float) -> dict[str, Any]:
    """The CPU of one request in milliseconds, and the packages and functions that took most of it, in per cent."""
    for _ in range(20):
        ask(act())
    requests, began = 0, time.process_time()
    with sampled() as (packages, functions):
        while time.process_time() - began < seconds:
            ask(act())
            requests += 1
    spent = time.process_time() - began
    return {"cpu": spent / requests * 1000, "packages": shares(packages), "functions": shares(functions)}


@contextmanager
def sampled() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """How often each package and each function was at work."""
    packages, functions = Counter[str](), Counter[str]()

    def note(number: int, frame: FrameType | None) -> None:
        if frame is None or (name := package(path := Path(frame.f_code.co_filename))) == OURSELVES:
            return  # who asks is no part of what it costs to answer
        packages[name] += 1
        functions[f"{path.stem}.{frame.f_code.co_name}, {name}"] += 1

    before = signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    try:
        yield packages, functions
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def package(path: Path) -> str:
    """Whose code a file is: an application of ours, a dependency, or Python's own."""
    parts = path.parts
    if "site-packages" in parts:
        name, *rest = parts[parts.index("site-packages") + 1 :]
        return f"{name}.{rest[0].removesuffix('.py')}" if name in SPLIT and rest else name.removesuffix(".py")
    return path.relative_to(PROJECT).parts[0] if path.is_relative_to(PROJECT) else "Python"


def shares(counts: Counter[str]) -> dict[str, float]:
    total = counts.total()
    return {name: round(count / total * 100, 1) for name, count in counts.most_common(MOST_TOLD)}


if __name__ == "__main__":
    main()
