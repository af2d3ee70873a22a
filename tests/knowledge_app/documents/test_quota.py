"""The limits of the documents of a team: their number and their size, however they are added."""

import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from access_app.role import Role
from knowledge_app.documents.adding import add_text, add_url
from knowledge_app.models import Document
from knowledge_app.quotas import DocumentQuotaExceeded
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import api_key, member
from tests.knowledge_app.conftest import make_base, run_jobs

pytestmark = pytest.mark.django_db

DOCUMENTS = "/api/knowledge/handbook/documents"
PAGE = "/knowledge/handbook"


@pytest.fixture
def editor():
    return member(Role.EDITOR, "support")


@pytest.fixture
def full(base, settings):
    """Return a base whose team has as many documents as it may have, in another base."""
    settings.KNOWLEDGE_DOCUMENTS_PER_TEAM = 1
    add_text(make_base("other"), "Notes", "The port is eighty.")
    return base


def test_a_team_with_as_many_documents_as_it_may_have_is_refused_with_the_way_out(full, editor):
    answer = Caller(api_key(editor)).post(DOCUMENTS, {"name": "Router", "text": "It has nine ports."})

    assert (answer.status_code, answer.body["code"]) == (429, "document_quota_exceeded")
    assert "support may have 1 documents in total" in answer.body["error"]
    assert "Delete documents" in answer.body["error"]
    assert Document.objects.count() == 1
    add_text(make_base("elsewhere", owner="sales"), "Notes", "Another team.")


def test_pages_and_dropped_files_are_refused_too(full, editor):
    client = Client()
    client.force_login(editor)
    dropped = client.post(
        f"{PAGE}/upload", {"files": SimpleUploadedFile("a.md", b"# A")}, headers={"Accept": "application/json"}
    )
    pasted = client.post(f"{PAGE}/text", {"name": "Router", "text": "It has nine ports."})
    fetched = client.post(f"{PAGE}/url", {"url": "https://example.org/manual.md"})

    assert [answer.status_code for answer in (dropped, pasted, fetched)] == [429] * 3
    for answer in (dropped, pasted, fetched):
        assert "may have 1 documents in total" in answer.content.decode()
    assert Document.objects.count() == 1


def test_the_size_of_the_documents_of_a_team_is_limited(base, editor, settings):
    settings.KNOWLEDGE_BYTES_PER_TEAM = 1000
    api = Caller(api_key(editor))
    assert api.post(DOCUMENTS, {"name": "Router", "text": "a" * 600}).status_code == 201

    files = [SimpleUploadedFile("a.md", b"a" * 100), SimpleUploadedFile("b.md", b"b" * 400)]
    sent = Client(headers={"Authorization": api.authorization}).post(DOCUMENTS, {"file": files})
    grown = api.post(DOCUMENTS, {"name": "Router", "text": "a" * 1001})

    assert (sent.status_code, grown.status_code) == (429, 429)
    assert [*Document.objects.values_list("name", "size")] == [("Router", 600)]
    assert api.post(DOCUMENTS, {"name": "Router", "text": "b" * 1000}).status_code == 201
    settings.KNOWLEDGE_BYTES_PER_TEAM = 100
    assert api.post(DOCUMENTS, {"name": "Router", "text": "c" * 500}).status_code == 201


def test_a_document_by_url_that_does_not_fit_fails_with_the_reason(base, settings):
    settings.KNOWLEDGE_BYTES_PER_TEAM = 1000
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"a" * 1001)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    document = add_url(base, f"http://127.0.0.1:{server.server_port}/manual.txt")
    run_jobs()
    server.shutdown()
    server.server_close()

    document.refresh_from_db()
    assert (document.status, document.size, document.text) == (Document.Status.FAILED, 0, "")
    assert "may have documents of 0 MB in total" in document.error


@pytest.mark.django_db(transaction=True)
def test_documents_that_are_added_at_once_do_not_pass_the_limit(base, settings):
    settings.KNOWLEDGE_DOCUMENTS_PER_TEAM = 3
    bases = [base, *(make_base(f"base-{number}") for number in range(7))]

    outcomes = run_concurrently([partial(add_text, base, "Notes", "The port is eighty.") for base in bases])

    assert sum(isinstance(outcome, DocumentQuotaExceeded) for outcome in outcomes) == 5, outcomes
    assert Document.objects.count() == 3


def test_the_size_is_summed_without_reading_the_documents(base):
    plan = Document.objects.filter(base=base).order_by().values("size").explain()

    if connection.vendor == "sqlite":  # PostgreSQL stores content beside the rows, and a small table is scanned
        assert "COVERING INDEX document_size_of_base" in plan
