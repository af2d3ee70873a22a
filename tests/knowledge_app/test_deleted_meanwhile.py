"""Knowledge bases that are deleted, or whose index is replaced, between the check of a request and its act."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from access_app.role import Role
from agentcms.errors import Conflict, NotFound
from jobs_app.models import Job
from knowledge_app.documents.adding import add_text
from knowledge_app.indexing.jobs import enqueue_reindexing
from knowledge_app.indexing.rebuild import begin_rebuild
from knowledge_app.models import Chunk, KnowledgeBase
from knowledge_app.sent_vectors import create_index, delete_index, upsert_vectors
from knowledge_app.views import bases, documents
from tests.factories import member
from tests.knowledge_app.conftest import run_jobs

pytestmark = pytest.mark.django_db

SETTINGS = {"name": "H", "embedder": "local/words", "chunk_size": 500, "chunk_overlap": 50, "filterable": ""}


@pytest.fixture
def deleting(monkeypatch):
    """Let the base be deleted as soon as a page has read it."""
    for module in (bases, documents):

        def get_and_delete(*args, get=module.get_page_base, **kwargs):
            base = get(*args, **kwargs)
            KnowledgeBase.objects.get(pk=base.pk).delete()
            return base

        monkeypatch.setattr(module, "get_page_base", get_and_delete)


def test_the_index_that_a_rebuild_has_made_live_is_not_deleted(base, embedder):
    add_text(base, "Router", "The router has a port.")
    run_jobs()
    earlier = KnowledgeBase.objects.get(pk=base.pk)
    base.chunk_size, base.chunk_overlap = 500, 50
    base.save()
    enqueue_reindexing(base)
    run_jobs()
    base.refresh_from_db()

    with pytest.raises(Conflict, match="has the documents"):
        delete_index(earlier, base.index)

    assert Chunk.objects.filter(index=base.index).count() == 1


@pytest.mark.parametrize(
    ("path", "fields"), [("text", {"name": "A", "text": "A port."}), ("url", {"url": "https://a.example"})]
)
def test_a_document_for_a_base_that_is_deleted_meanwhile_is_refused_with_the_reason(base, deleting, path, fields):
    client = Client()
    client.force_login(member(Role.PUBLISHER, "support"))

    answer = client.post(f"/knowledge/handbook/{path}", fields)

    assert (answer.status_code, Job.objects.count()) == (404, 0)
    assert "The knowledge base was deleted meanwhile." in answer.text


def test_the_settings_of_a_base_that_is_deleted_meanwhile_are_refused_with_the_reason(base, deleting):
    client = Client()
    client.force_login(member(Role.PUBLISHER, "support"))

    answer = client.post("/knowledge/handbook/settings", SETTINGS, follow=True)

    assert (answer.redirect_chain, KnowledgeBase.objects.count()) == ([("/knowledge", 302)], 0)
    assert "The knowledge base was deleted meanwhile." in answer.text


def test_a_file_for_a_base_that_is_deleted_meanwhile_is_refused_with_the_reason(base, deleting):
    client = Client()
    client.force_login(member(Role.PUBLISHER, "support"))

    answer = client.post(
        "/knowledge/handbook/upload",
        {"files": SimpleUploadedFile("a.txt", b"Text.")},
        headers={"accept": "application/json"},
    )

    assert answer.status_code == 404
    assert answer.json()["results"] == [
        {"name": "a.txt", "error": "The knowledge base was deleted meanwhile.", "status": 404}
    ]


def test_vectors_and_indexes_for_a_base_that_is_deleted_meanwhile_are_refused_with_the_reason(base):
    index = base.index
    KnowledgeBase.objects.get(pk=base.pk).delete()

    acts = (
        lambda: create_index(base, "other", 2),
        lambda: upsert_vectors(base, index, [[1] * 64], [{"text": "a"}], None),
        lambda: begin_rebuild(base),
    )
    for act in acts:
        with pytest.raises(NotFound, match="was deleted meanwhile"):
            act()
