import sys
from io import BytesIO

from agentcms.middleware.wsgi_chunked import LENGTH_IS_UPPER_BOUND, with_content_length


class Trickle(BytesIO):
    """A stream that returns a few bytes per read, like a socket."""

    def read(self, size=-1):
        return super().read(min(size, 7) if size >= 0 else size)


def environ_of_application(body, **environ):
    """Return the environ that the application gets."""
    seen = {}
    base = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, "wsgi.input": Trickle(body)}

    list(with_content_length(lambda environ, start: seen.update(environ) or [])({**base, **environ}, None))

    return seen


def test_a_chunked_body_gets_a_content_length():
    seen = environ_of_application(b'{"name": "Ada"}')

    assert seen["CONTENT_LENGTH"] == "15"
    assert seen["wsgi.input"].read() == b'{"name": "Ada"}'
    assert LENGTH_IS_UPPER_BOUND not in seen


def test_a_chunked_body_over_the_limit_stays_complete(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 20
    body = bytes(range(100))

    seen = environ_of_application(body)

    assert seen["CONTENT_LENGTH"] == str(sys.maxsize)
    assert seen[LENGTH_IS_UPPER_BOUND]
    assert b"".join(iter(lambda: seen["wsgi.input"].read(8), b"")) == body


def test_a_request_with_content_length_is_unchanged():
    seen = environ_of_application(b"{}", HTTP_TRANSFER_ENCODING="", CONTENT_LENGTH="2")

    assert isinstance(seen["wsgi.input"], Trickle)
    assert seen["CONTENT_LENGTH"] == "2"


def test_reading_ends_where_the_server_does_not_end_the_stream():
    assert "CONTENT_LENGTH" not in environ_of_application(b"{}", **{"wsgi.input_terminated": False})
