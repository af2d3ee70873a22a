"""Media types of requests in lower case. They are case-insensitive (RFC 9110), but Django compares them exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agentcms.middleware.wsgi_charset import Application, Environ


def lower_media_types(application: Application) -> Application:
    """Wrap a WSGI application so that it gets media types in lower case. A boundary stays as sent."""

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        media_type, semicolon, parameters = environ.get("CONTENT_TYPE", "").partition(";")
        if not media_type.islower():
            environ["CONTENT_TYPE"] = media_type.lower() + semicolon + parameters
        if "HTTP_ACCEPT" in environ:
            environ["HTTP_ACCEPT"] = environ["HTTP_ACCEPT"].lower()
        return application(environ, start_response)

    return wrapper
