"""The WSGI environ of a request."""

from __future__ import annotations

import sys
from io import BytesIO, RawIOBase
from typing import IO
from wsgiref.util import FileWrapper

from granian.rsgi import Scope

from agentcms.middleware.wsgi_charset import Environ

BASE_ENVIRON: Environ = {
    "SCRIPT_NAME": "",
    "wsgi.errors": sys.stderr,
    "wsgi.file_wrapper": FileWrapper,
    "wsgi.multiprocess": True,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}


def environ_of(scope: Scope) -> Environ:
    """Return the environ of a request without a body (PEP 3333). `set_body` adds one."""
    server, _, port = scope.server.rpartition(":")
    client, _, client_port = scope.client.rpartition(":")
    environ = BASE_ENVIRON | {
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": latin1(scope.path),
        "QUERY_STRING": latin1(scope.query_string),
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "SERVER_NAME": server.strip("[]"),
        "SERVER_PORT": port,
        "REMOTE_ADDR": client.strip("[]"),
        "REMOTE_PORT": client_port,
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": BytesIO(),
    }
    headers = scope.headers
    # Django refuses an empty host; without one it would use SERVER_NAME.
    environ["HTTP_HOST"] = "" if "host" in headers else scope.authority or ""
    readable = headers.items()
    for name, value in readable:
        add_header(environ, name, value)
    # A value that is not ASCII becomes empty: without its `If-Match`, for example, a change would have no condition.
    for name in set(headers.keys()) - {name for name, _ in readable}:
        add_header(environ, name, "")
    return environ


def add_header(environ: Environ, name: str, value: str) -> None:
    """Add a header. Values of repeated headers are joined."""
    if "_" in name:
        return  # `X_Forwarded_For` would look like `X-Forwarded-For`, which proxies replace
    key = name.upper().replace("-", "_")
    if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        key = f"HTTP_{key}"
    if environ.get(key):
        value = f"{environ[key]}{';' if key == 'HTTP_COOKIE' else ','}{value}"
    environ[key] = value


def set_body(environ: Environ, body: IO[bytes] | RawIOBase, length: int) -> None:
    """Set the body. `length` is the number of its bytes, or the length that the client declared if that is more."""
    environ["wsgi.input"] = body
    environ["CONTENT_LENGTH"] = str(length)


def latin1(text: str) -> str:
    """Return the text as WSGI passes it: each character is one byte of its UTF-8."""
    return text if text.isascii() else text.encode().decode("latin-1")
