"""Another index of a base, which is built beside the live one and replaces it when it is complete."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from agentcms.vectors import find_embedder
from jobs_app.models import Job
from knowledge_app.indexing.batches import in_batches
from knowledge_app.indexing.embedding import BATCH_SIZE, embed_chunks
from knowledge_app.indexing.fill import Superseded, source_hash
from knowledge_app.models import Chunk, Document, IndexedDocument, KnowledgeBase, KnowledgeIndex


def create_live_index(base: KnowledgeBase) -> KnowledgeIndex:
    """Create the index of a new base."""
    base.index = KnowledgeIndex.objects.create(base=base, name=base.key, **base.settings_of_index)
    base.save(update_fields=["index", "updated_at"])
    return base.index


def begin_rebuild(base: KnowledgeBase) -> KnowledgeIndex:
    """Return the index that is built for the settings of a base: that of a killed job, or a new one."""
    with transaction.atomic():
        base = KnowledgeBase.objects.select_for_update().get(pk=base.pk)
        building = KnowledgeIndex.objects.filter(base=base, is_building=True)
        if (index := building.filter(**base.settings_of_index).first()) is not None:
            return index
        building.delete()
        name = f"{base.key}-building"
        return KnowledgeIndex.objects.create(base=base, name=name, is_building=True, **base.settings_of_index)


def copy_sent_chunks(base: KnowledgeBase, index: KnowledgeIndex, job: Job) -> None:
    """Embed the chunks again that callers of the API sent with their vectors."""
    sent = Chunk.objects.filter(index=base.index, document=None)
    existing = {*Chunk.objects.filter(index=index, document=None).values_list("key", flat=True)}
    embedder = find_embedder(index.embedder)
    rows = [row for row in sent.defer("data").order_by("pk") if row.key not in existing]
    for batch in in_batches(rows, BATCH_SIZE):
        vectors = embed_chunks(embedder, [row.text for row in batch])
        for row, vector in zip(batch, vectors, strict=True):
            row.pk, row.index, row.embedder = None, index, index.embedder
            row.scale, row.data = vector.scale, vector.data
        Chunk.objects.bulk_create(batch, ignore_conflicts=True)
        job.report_progress(done=0)


def finish_rebuild(base: KnowledgeBase, index: KnowledgeIndex) -> list[Any]:
    """Let an index replace the live one if it has all documents. Else return the IDs of those that it has not.

    Raise Superseded if the base has other settings by now, or was deleted.
    """
    with transaction.atomic():
        row = KnowledgeBase.objects.select_for_update().filter(pk=base.pk).first()
        building = KnowledgeIndex.objects.filter(pk=index.pk, is_building=True).first()
        if row is None or building is None:
            raise Superseded
        if missing := missing_documents(row, index):
            return missing
        old_id, row.index = row.index_id, building
        row.save(update_fields=["index", "updated_at"])
        row.indexes.filter(pk=old_id or building.pk).exclude(pk=building.pk).delete()
        building.name, building.is_building = row.key, False
        building.save(update_fields=["name", "is_building"])
    return []


def missing_documents(base: KnowledgeBase, index: KnowledgeIndex) -> list[Any]:
    """Return the IDs of the extracted documents that an index has not as they are now."""
    present = dict(IndexedDocument.objects.filter(index=index).values_list("document_id", "source_hash"))
    columns = ("pk", "text_hash", "media_type", "metadata")
    documents = Document.objects.filter(base=base).exclude(text_hash="").only(*columns).order_by("pk")
    return [row.pk for row in documents if present.get(row.pk) != source_hash(row, index)]
