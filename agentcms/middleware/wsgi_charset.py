"""Everything here is UTF-8. Python knows encodings that decode to what is no text, or that cannot decode at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.utils.http import parse_header_parameters

from agentcms.middleware.wsgi_chunked import Application, Environ

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
NOT_UTF8_MESSAGE = b"Send forms in UTF-8.\n"


def require_utf8(application: Application) -> Application:
    """Wrap a WSGI application so that it never meets another charset: Django would fail as it reads the address.

    A form in one is refused, any other body is bytes of no known kind.
    """

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        header = environ.get("CONTENT_TYPE", "")
        if "charset" not in header.lower():
            return application(environ, start_response)
        kind, parameters = parse_header_parameters(header)
        if str(parameters.get("charset", "utf-8")).lower() not in ("utf-8", "utf8"):
            if kind in FORM_TYPES:
                start_response("415 Unsupported Media Type", [("Content-Type", "text/plain; charset=utf-8")])
                return [NOT_UTF8_MESSAGE]
            environ["CONTENT_TYPE"] = "application/octet-stream"
        return application(environ, start_response)

    return wrapper
