"""Documents by URL: servers that redirect, compress, never end or lead inside the network."""

import gzip
import socket
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest

from jobs_app.models import Job
from knowledge_app.documents import fetching, preparation
from knowledge_app.documents.adding import add_url
from knowledge_app.documents.errors import DocumentError
from knowledge_app.documents.fetching import fetch_document
from tests.knowledge_app.conftest import run_jobs
from tests.tools_app.mcp.test_addresses import REFUSED

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings):
    """Start a server that answers as its `answer` says: a status, headers and parts of the body."""
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests.append(self.path)
            status, headers, parts = self.server.answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for part in parts:
                    self.wfile.write(part)
            except OSError:
                return

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.url = [], f"http://127.0.0.1:{server.server_port}/manual"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def refusal(url):
    with pytest.raises(DocumentError) as error:
        fetch_document(url)
    return str(error.value)


def test_a_document_is_fetched_indexed_and_named_with_its_address(server, base):
    server.answer = 200, {"Content-Type": "text/markdown; charset=utf-8"}, [b"# Ports\n\nThe port is eighty."]

    document = add_url(base, server.url)
    run_jobs()

    document.refresh_from_db()
    assert (document.status, document.error, document.chunk_count) == ("ready", "", 1)
    assert document.media_type == "text/markdown"
    assert server.requests == ["/manual"]


def test_a_document_of_another_format_is_read_by_it_after_a_worker_that_died_before(server, base, monkeypatch):
    server.answer = 200, {"Content-Type": "text/plain"}, [b"<h1>Ports</h1>"]
    document = add_url(base, server.url)
    run_jobs()
    server.answer = 200, {"Content-Type": "text/html"}, [b"<h1>Ports</h1>"]

    def die(content, media_type):
        raise KeyboardInterrupt

    add_url(base, server.url)
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "extract_text", die)
        with pytest.raises(KeyboardInterrupt):
            run_jobs()
    Job.objects.filter(state="running").update(state="queued")
    run_jobs()

    document.refresh_from_db()
    assert (document.status, document.media_type, document.text) == ("ready", "text/html", "# Ports")


def test_a_document_whose_server_names_another_format_is_extracted_again(server, base):
    content = [b"<html><body><p>The port is eighty.</p></body></html>"]
    server.answer = 200, {"Content-Type": "text/plain"}, content
    document = add_url(base, server.url)
    run_jobs()
    server.answer = 200, {"Content-Type": "text/html"}, content

    add_url(base, server.url)
    run_jobs()

    document.refresh_from_db()
    assert (document.media_type, document.text, document.status) == ("text/html", "The port is eighty.", "ready")


@pytest.mark.parametrize("url", [url for url in REFUSED if "?" not in url and "#" not in url])
def test_a_private_address_is_refused_when_it_is_entered(base, url):
    with pytest.raises(DocumentError):
        add_url(base, url)


def test_a_name_that_leads_inside_is_refused_at_the_connection_and_its_address_is_not_told(monkeypatch):
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        listener.setblocking(False)
        inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **kwargs: inside)

        message = refusal(f"http://docs.example.org:{port}/manual")

        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "'docs.example.org' has a private address" in message
    assert "127.0.0.1" not in message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server, status):
    server.answer = status, {"Location": "/secret", "Content-Length": "0"}, []

    assert refusal(server.url) == "The URL redirects to another one. Add that one instead."
    assert server.requests == ["/manual"]


def test_a_compressed_answer_is_refused_before_it_is_unpacked(server):
    bomb = gzip.compress(b"\0" * 20_000_000)
    server.answer = 200, {"Content-Encoding": "gzip", "Content-Type": "text/plain"}, [bomb]

    assert refusal(server.url) == fetching.COMPRESSED_MESSAGE


def test_a_document_without_end_is_refused_at_the_limit(server, settings):
    settings.KNOWLEDGE_MAX_DOCUMENT_BYTES = 2 * 1024 * 1024
    server.answer = 200, {"Content-Type": "text/plain"}, (b"x" * 65536 for _ in range(10_000))

    assert refusal(server.url) == "The document is larger than 2 MB. Divide it."


def test_a_slow_answer_ends_in_time(server, monkeypatch):
    def parts():
        for _ in range(100):
            time.sleep(0.05)
            yield b"x"

    monkeypatch.setattr(fetching, "FETCH_TIMEOUT", 0.3)
    server.answer = 200, {"Content-Type": "text/plain"}, parts()

    assert refusal(server.url) == "The URL did not answer within 0.3 seconds."


@pytest.mark.parametrize(("status", "headers", "words"), [
    (404, {}, "status 404"),
    (200, {"Content-Type": "application/zip"}, "cannot be read"),
])  # fmt: skip
def test_another_answer_fails_with_its_reason(server, base, status, headers, words):
    server.answer = status, headers, [b"PK\x03\x04"]

    document = add_url(base, server.url)
    run_jobs()

    document.refresh_from_db()
    assert document.status == "failed"
    assert words in document.error
