"""The WSGI environ that Django gets for a request of the web server."""

from types import SimpleNamespace

import pytest
from django.core.handlers.wsgi import WSGIRequest

from agentcms.gateway.environ import environ_of


class Headers(dict):
    """Headers as granian passes them: repeated names, and no value that is not ASCII."""

    def __init__(self, *items: tuple[str, str], unreadable: tuple[str, ...] = ()) -> None:
        super().__init__([*items, *((name, "") for name in unreadable)])
        self.pairs = items

    def items(self):
        return self.pairs


def environ(*headers, unreadable=(), **changes):
    scope = {
        "method": "GET",
        "path": "/agents/a",
        "query_string": "q=b",
        "http_version": "1.1",
        "server": "127.0.0.1:8000",
        "client": "198.51.100.7:50000",
        "scheme": "http",
        "authority": None,
        "headers": Headers(*headers, unreadable=unreadable),
    }
    return environ_of(SimpleNamespace(**{**scope, **changes}))


def test_a_request_has_what_django_reads():
    result = environ(("host", "cms.example.org"), ("content-type", "text/plain"), ("content-length", "5"))

    request = WSGIRequest(result)

    assert (request.method, request.path, request.GET["q"]) == ("GET", "/agents/a", "b")
    assert request.headers["Host"] == "cms.example.org"
    assert (request.content_type, result["CONTENT_LENGTH"]) == ("text/plain", "5")
    assert (result["REMOTE_ADDR"], result["REMOTE_PORT"]) == ("198.51.100.7", "50000")
    assert result["SERVER_PORT"] == "8000"


def test_an_ipv6_address_has_no_brackets():
    result = environ(client="[2001:db8::1]:50000", server="[::1]:8000")

    assert (result["REMOTE_ADDR"], result["SERVER_NAME"]) == ("2001:db8::1", "::1")


@pytest.mark.parametrize("path", ["/agents/é", "/agents/Ж", "/agents/\ufffd"])
def test_a_path_of_any_script_reaches_django(path):
    assert WSGIRequest(environ(path=path)).path_info == path


def test_repeated_headers_are_joined():
    result = environ(("accept", "a"), ("accept", "b"), ("cookie", "x=1"), ("cookie", "y=2"))

    assert result["HTTP_ACCEPT"] == "a,b"
    assert WSGIRequest(result).COOKIES == {"x": "1", "y": "2"}


def test_a_header_with_an_underscore_cannot_replace_another():
    result = environ(("x_forwarded_for", "203.0.113.9"), ("content_length", "7"))

    assert "HTTP_X_FORWARDED_FOR" not in result
    assert "CONTENT_LENGTH" not in result


def test_an_unreadable_header_is_empty():
    result = environ(("accept", "a"), unreadable=("if-match", "x_real_ip"))

    assert (result["HTTP_IF_MATCH"], result["HTTP_ACCEPT"]) == ("", "a")
    assert "HTTP_X_REAL_IP" not in result


@pytest.mark.parametrize(
    ("headers", "unreadable", "authority", "host"),
    [
        ([("host", "a.example")], (), None, "a.example"),
        ([], (), "b.example", "b.example"),  # the URL has the host
        ([], ("host",), "127.0.0.1", ""),
        ([], (), None, ""),
    ],
)
def test_the_host_is_what_the_client_sent(headers, unreadable, authority, host):
    assert environ(*headers, unreadable=unreadable, authority=authority)["HTTP_HOST"] == host
