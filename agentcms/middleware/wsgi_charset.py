"""Protection against request bodies in other charsets than UTF-8, and against an invalid `Content-Type`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from agentcms.web.header_parameters import parse_parameters

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
UTF8 = re.compile('charset="?utf8"?', re.IGNORECASE)
NOT_UTF8_MESSAGE = b"Send forms in UTF-8.\n"
UNKNOWN_TYPE = "application/octet-stream"


def require_utf8(application: Application) -> Application:
    """Wrap a WSGI application so that it gets no other charset than UTF-8.

    A form in another charset is rejected; any other body becomes `application/octet-stream`. Django would use the
    charset to decode the query string as well and fail: some of Python's codecs do not decode to text. It would also
    fail for an invalid `Content-Type`, before it can answer with an error.
    """

    def wrapper(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        header = environ.get("CONTENT_TYPE", "")
        if "charset" not in header.lower() and "*" not in header:  # without these, parameters are always valid
            return application(environ, start_response)
        try:
            media_type, parameters = parse_parameters(header)
        except ValueError:
            environ["CONTENT_TYPE"] = UNKNOWN_TYPE
            return application(environ, start_response)
        charset = str(parameters.get("charset", "utf-8")).lower()
        if charset == "utf8":  # Django accepts no form with this name of UTF-8
            environ["CONTENT_TYPE"] = UTF8.sub("charset=utf-8", header)
        elif charset != "utf-8":
            if media_type in FORM_TYPES:
                start_response("415 Unsupported Media Type", [("Content-Type", "text/plain; charset=utf-8")])
                return [NOT_UTF8_MESSAGE]
            environ["CONTENT_TYPE"] = UNKNOWN_TYPE
        return application(environ, start_response)

    return wrapper
