"""Protection against request bodies in other charsets than UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from django.utils.http import parse_header_parameters

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
UTF8 = re.compile('charset="?utf8"?', re.IGNORECASE)
NOT_UTF8_MESSAGE = b"Send forms in UTF-8.\n"


def require_utf8(application: Application) -> Application:
    """Wrap a WSGI application so that it gets no other charset than UTF-8.

    A form in another charset is rejected; any other body becomes `application/octet-stream`. Django would use the
    charset to decode the query string as well and fail: some of Python's codecs do not decode to text.
    """

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        header = environ.get("CONTENT_TYPE", "")
        if "charset" not in header.lower():
            return application(environ, start_response)
        media_type, parameters = parse_header_parameters(header)
        charset = str(parameters.get("charset", "utf-8")).lower()
        if charset == "utf8":  # Django accepts no form with this name of UTF-8
            environ["CONTENT_TYPE"] = UTF8.sub("charset=utf-8", header)
        elif charset != "utf-8":
            if media_type in FORM_TYPES:
                start_response("415 Unsupported Media Type", [("Content-Type", "text/plain; charset=utf-8")])
                return [NOT_UTF8_MESSAGE]
            environ["CONTENT_TYPE"] = "application/octet-stream"
        return application(environ, start_response)

    return wrapper
