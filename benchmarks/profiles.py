"""CPU profile of each API operation in a web process, by package.

    python -m benchmarks.profiles KEY     profiles the sample data of DATABASE_URL; the last line is JSON

Calls the WSGI application directly, without the web server. Takes a sample every few milliseconds of CPU time. Time in
C code counts for the Python function that called it. The CPU time of the database is not included.
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
from benchmarks.client import Request, RequestEncoder

PROJECT = Path(__file__).resolve().parent.parent
SAMPLE_INTERVAL = 0.004  # seconds of CPU; kernels do not measure more finely
MAX_ENTRIES = 8
WARM_UP_REQUESTS = 20
OWN_PACKAGE = "benchmarks"
SPLIT_PACKAGES = {"django"}  # large packages, whose subpackages are listed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("key")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds per operation")
    options = parser.parse_args()
    # Otherwise each sample would wake the thread that waits for the shutdown signal.
    signal.set_wakeup_fd(-1)
    encoder = InProcessEncoder(options.key)
    for request in load.history_edits(encoder):
        call_application(request)
    operations = load.build_operations(encoder, options.agents)
    print(json.dumps({name: profile(operation, options.seconds) for name, operation in operations.items()}))


class InProcessEncoder(RequestEncoder):
    """Encoder of requests for the application in this process."""

    def __init__(self, key: str) -> None:
        super().__init__(80, key)

    def fetch_json(self, path: str) -> Any:
        return json.loads(call_application(self.get(path)))


def call_application(request: Request) -> bytes:
    """Pass an encoded request to the application. Return the body; raise RuntimeError for an error status."""
    environ = parse_environ(request)
    statuses: list[str] = []
    chunks = application(environ, lambda status, *rest: statuses.append(status))
    body = b"".join(chunks)
    if close := getattr(chunks, "close", None):
        close()
    if not statuses[0].startswith("200"):
        raise RuntimeError(
            f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} returned {statuses[0]}: {body[:200]!r}"
        )
    return body


def parse_environ(request: Request) -> dict[str, Any]:
    """Return the WSGI environment of an encoded request."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, protocol = first.split(" ")
    path, _, query = target.partition("?")
    fields = (line.split(": ", 1) for line in lines)
    headers = {name.upper().replace("-", "_"): value for name, value in fields}
    environ: dict[str, Any] = {f"HTTP_{name}": value for name, value in headers.items()}
    environ |= {name: headers[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if name in headers}
    environ |= {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SERVER_PROTOCOL": protocol}
    environ |= {"SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "REMOTE_ADDR": "127.0.0.1", "SCRIPT_NAME": ""}
    return environ | {"wsgi.url_scheme": "http", "wsgi.input": BytesIO(body)}


def profile(operation: load.Operation, seconds: float) -> dict[str, Any]:
    """Return the CPU milliseconds per request, and the packages and functions with most of it, in per cent."""
    for _ in range(WARM_UP_REQUESTS):
        call_application(operation())
    requests, started = 0, time.process_time()
    with sampling() as (packages, functions):
        while time.process_time() - started < seconds:
            call_application(operation())
            requests += 1
    cpu = time.process_time() - started
    return {"cpu": cpu / requests * 1000, "packages": percentages(packages), "functions": percentages(functions)}


@contextmanager
def sampling() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Sample the running code. Yield the counts by package and by function."""
    packages, functions = Counter[str](), Counter[str]()

    def record_sample(number: int, frame: FrameType | None) -> None:
        if frame is None or (package := package_name(path := Path(frame.f_code.co_filename))) == OWN_PACKAGE:
            return
        packages[package] += 1
        functions[f"{path.stem}.{frame.f_code.co_name}, {package}"] += 1

    previous = signal.signal(signal.SIGPROF, record_sample)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_INTERVAL, SAMPLE_INTERVAL)
    try:
        yield packages, functions
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def package_name(path: Path) -> str:
    """Return the package of a source file: an application of the project, a dependency, or "Python"."""
    parts = path.parts
    if "site-packages" in parts:
        name, *rest = parts[parts.index("site-packages") + 1 :]
        return f"{name}.{rest[0].removesuffix('.py')}" if name in SPLIT_PACKAGES and rest else name.removesuffix(".py")
    return path.relative_to(PROJECT).parts[0] if path.is_relative_to(PROJECT) else "Python"


def percentages(counts: Counter[str]) -> dict[str, float]:
    """Return the share of the most frequent entries in per cent."""
    total = counts.total()
    return {name: round(count / total * 100, 1) for name, count in counts.most_common(MAX_ENTRIES)}


if __name__ == "__main__":
    main()
