"""Another index of a base, which is built beside the live one and replaces it when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from agentcms.vectors import find_embedder
from jobs_app.models import Job
from knowledge_app.indexing.document_chunks import Superseded, lock_base, lock_row, source_hash
from knowledge_app.indexing.embedding import BATCH_SIZE, embed_chunks
from knowledge_app.models import Chunk, Document, IndexedDocument, KnowledgeBase, KnowledgeIndex


def create_live_index(base: KnowledgeBase) -> KnowledgeIndex:
    """Create the index of a new base."""
    base.index = KnowledgeIndex.objects.create(base=base, name=base.key, **base.settings_of_index)
    base.save(update_fields=["index", "updated_at"])
    return base.index


def begin_rebuild(base: KnowledgeBase) -> KnowledgeIndex:
    """Return the index that is built for the settings of a base: that of a killed job, or a new one.

    Raise NotFound if the base was deleted.
    """
    with transaction.atomic():
        base = KnowledgeBase.objects.get_locked(base.pk)
        building = KnowledgeIndex.objects.filter(base=base, is_building=True)
        if (index := building.filter(**base.settings_of_index).first()) is not None:
            return index
        building.delete()
        # Callers of the API name indexes of their own, in which a plus sign is not allowed.
        name = f"{base.key}+building"
        return KnowledgeIndex.objects.create(base=base, name=name, is_building=True, **base.settings_of_index)


def sent_chunks(base: KnowledgeBase, after: int) -> QuerySet[Chunk]:
    """Return the chunks of the live index that callers sent. Each one that is sent gets a higher primary key."""
    return Chunk.objects.filter(index=base.index_id, document=None, pk__gt=after).order_by("pk")


def copy_sent_chunks(base: KnowledgeBase, index: KnowledgeIndex, after: int, job: Job) -> int:
    """Embed the chunks again that callers sent after the one of a primary key. Return the key of the last one.

    Raise Superseded if the index was replaced or deleted.
    """
    embedder = find_embedder(index.embedder)
    while rows := [*sent_chunks(base, after).defer("data")[:BATCH_SIZE]]:
        after = rows[-1].pk
        batch = without_copied(rows, index)
        vectors = embed_chunks(embedder, [row.text for row in batch])
        for row, vector in zip(batch, vectors, strict=True):
            row.pk, row.index, row.embedder = None, index, index.embedder
            row.scale, row.data = vector.scale, vector.data
        with transaction.atomic():
            # Another job may copy the same chunks, or build for newer settings.
            lock_base(base.pk)
            lock_row(KnowledgeIndex.objects.filter(pk=index.pk, is_building=True))
            # A caller may have sent a key again after it was copied.
            Chunk.objects.filter(index=index, document=None, key__in=[row.key for row in batch]).delete()
            Chunk.objects.bulk_create(batch)
        job.report_progress(done=0)
    return after


def without_copied(rows: Sequence[Chunk], index: KnowledgeIndex) -> list[Chunk]:
    """Return the chunks that an index has not as they are now: a killed job may have copied the others."""
    present = Chunk.objects.filter(index=index, document=None, key__in=[row.key for row in rows])
    copied = {
        key: (text_hash, metadata) for key, text_hash, metadata in present.values_list("key", "text_hash", "metadata")
    }
    return [row for row in rows if copied.get(row.key) != (row.text_hash, row.metadata)]


def finish_rebuild(base: KnowledgeBase, index: KnowledgeIndex, copied: int) -> list[UUID] | None:
    """Let an index replace the live one, and return None, if it has all of it.

    Else return the IDs of the documents that it has not. Only chunks that callers sent after the one of the key
    `copied` may be missing. Raise Superseded if the base has other settings by now, or was deleted.
    """
    with transaction.atomic():
        row = KnowledgeBase.objects.select_for_update().filter(pk=base.pk).first()
        building = KnowledgeIndex.objects.filter(pk=index.pk, is_building=True).first()
        if row is None or building is None:
            raise Superseded
        if building.settings == row.settings_of_index:
            missing = missing_documents(row, index)
            if missing or sent_chunks(row, copied).exists():
                return missing
            replace_live_index(row, building)
            return None
        # Perhaps the base has the settings of its live index again. Then no other job would delete this one.
        building.delete()
    raise Superseded


def replace_live_index(base: KnowledgeBase, building: KnowledgeIndex) -> None:
    """Let a complete index take the place and the name of the live one of a locked base."""
    old_id, base.index = base.index_id, building
    base.save(update_fields=["index", "updated_at"])
    # Before the other gets its name, which is unique in a base.
    base.indexes.filter(pk=old_id or building.pk).exclude(pk=building.pk).delete()
    building.name, building.is_building = base.key, False
    building.save(update_fields=["name", "is_building"])
    # Those that wait count the chunks that are to come.
    chunks = Chunk.objects.filter(index=building, document=OuterRef("pk")).order_by().values("document")
    counts = Coalesce(Subquery(chunks.annotate(count=Count("pk")).values("count")), 0)
    documents = Document.objects.filter(base=base)
    documents.exclude(pk__in=documents.waiting().values("pk")).update(chunk_count=counts)


def missing_documents(base: KnowledgeBase, index: KnowledgeIndex) -> list[UUID]:
    """Return the IDs of the extracted documents that an index has not as they are now."""
    present = dict(IndexedDocument.objects.filter(index=index).values_list("document_id", "source_hash"))
    columns = ("pk", "text_hash", "media_type", "metadata")
    documents = Document.objects.filter(base=base).exclude(text_hash="").only(*columns).order_by("pk")
    return [row.pk for row in documents if present.get(row.pk) != source_hash(row, index)]
