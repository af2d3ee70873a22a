"""Deletions beside a writer of the same knowledge base. All lock the base first, or two could wait for each other."""

import time
from threading import Event

import pytest
from django.db import transaction

from knowledge_app.documents.adding import add_text, delete_document
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.sent_vectors import create_index, delete_index, upsert_vectors
from tests.concurrently import run_concurrently
from tests.knowledge_app.conftest import make_base

pytestmark = pytest.mark.django_db(transaction=True)

PAUSE = 0.3  # seconds for which the writer holds its locks


@pytest.fixture
def base():
    base = make_base(embedder="local/multilingual")
    create_index(base, "own", 3)
    upsert_vectors(base, base.indexes.get(name="own"), [[1, 2, 3]], [{}], ["same"])
    document = add_text(base, "Manual", "Text")
    Chunk.objects.filter(key="same").update(document=document)
    return base


def replace_chunks(base, locked):
    """Replace the chunks as `upsert_vectors` and the jobs do, slowly."""
    with transaction.atomic():
        KnowledgeBase.objects.select_for_update().get(pk=base.pk)
        base.documents.select_for_update().get()
        KnowledgeIndex.objects.select_for_update().get(base=base, name="own")
        locked.set()
        time.sleep(PAUSE)
        Chunk.objects.filter(key="same").delete()


DELETIONS = {
    "base": lambda base: KnowledgeBase.objects.get(pk=base.pk).delete(),
    "index": lambda base: delete_index(base, base.indexes.get(name="own")),
    "document": lambda base: delete_document(base.documents.get()),
}


@pytest.mark.parametrize("deletion", DELETIONS)
def test_a_deletion_and_a_writer_do_not_wait_for_each_other(base, deletion):
    locked = Event()

    def delete():
        locked.wait(10)
        DELETIONS[deletion](base)

    answers = run_concurrently([lambda: replace_chunks(base, locked), delete])

    assert answers == [None, None]
    assert not Chunk.objects.filter(key="same").exists()
