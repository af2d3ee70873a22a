"""The chunks of a document in an index: embedding the new ones, and replacing the old ones in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from agentcms.db.batches import in_batches
from agentcms.vectors import find_embedder
from agentcms.vectors.embedders import Embedder
from agentcms.vectors.quantize import PackedVector
from agentcms.wire.canonical import canonical
from knowledge_app.documents.chunking import Passage, split_text
from knowledge_app.indexing.embedding import BATCH_SIZE, embed_chunks
from knowledge_app.indexing.limits import reject_many_chunks
from knowledge_app.models import Chunk, Document, IndexedDocument, KnowledgeBase, KnowledgeIndex

HASHES_PER_QUERY = 500


class Superseded(Exception):
    """Another job indexes this document now, or the document or the index was deleted."""


# Locks what a job writes, inside a transaction. Raises Superseded or LeaseLost if the job may no longer write it.
Fence = Callable[[], None]
ReportProgress = Callable[[int, int], None]  # chunks that are embedded, and all of them


def source_hash(document: Document, index: KnowledgeIndex) -> str:
    """Return the hash of everything that the chunks of a document are made from."""
    parts = [document.text_hash, document.media_type, index.chunk_size, index.chunk_overlap, document.metadata]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def is_document_indexed(document: Document, index: KnowledgeIndex) -> bool:
    """Return whether an index has the chunks of a document as it is now."""
    current = source_hash(document, index)
    return IndexedDocument.objects.filter(index=index, document=document, source_hash=current).exists()


class DocumentFill:
    """The work of making the chunks of one document in one index. It continues where a killed job stopped."""

    def __init__(self, document: Document, index: KnowledgeIndex, fence: Fence, progress: ReportProgress) -> None:
        self.document, self.index = document, index
        self.fence, self.progress = fence, progress
        self.rows = Chunk.objects.filter(index=index, document=document)

    def run(self) -> int:
        """Return the number of chunks. Raise Superseded, DocumentError and EmbedderFailed."""
        sections = [(int(position), str(place)) for position, place in self.document.sections]
        sizes = {"size": self.index.chunk_size, "overlap": self.index.chunk_overlap}
        passages = [*split_text(self.document.text, self.document.media_type, sections, **sizes)]
        reject_many_chunks(self.index, self.document, len(passages))
        waiting = self.resume_earlier_attempt(passages)
        known = known_vectors(self.index, {passage.hash for passage in waiting})
        embedder = find_embedder(self.index.embedder)
        done = len(passages) - len(waiting)
        for batch in in_batches(waiting, BATCH_SIZE):
            known |= embed_new(embedder, batch, known)
            self.insert(batch, known)
            done += len(batch)
            self.progress(done, len(passages))
        self.swap(len(passages))
        return len(passages)

    def resume_earlier_attempt(self, passages: Sequence[Passage]) -> list[Passage]:
        """Delete the chunks of an earlier attempt that are outdated. Return the passages that it did not embed."""
        pending = {number: (pk, digest) for pk, number, digest in self.pending_rows()}
        current = {passage.number: passage.hash for passage in passages}
        outdated = [pk for number, (pk, digest) in pending.items() if current.get(number) != digest]
        with transaction.atomic():
            self.fence()
            Chunk.objects.filter(pk__in=outdated).delete()
        return [passage for passage in passages if pending.get(passage.number, (0, ""))[1] != passage.hash]

    def pending_rows(self) -> Iterable[tuple[int, int, str]]:
        return self.rows.filter(is_pending=True).values_list("pk", "number", "text_hash")

    def insert(self, passages: Iterable[Passage], vectors: dict[str, PackedVector]) -> None:
        rows = [self.build_row(passage, vectors[passage.hash]) for passage in passages]
        try:
            with transaction.atomic():
                self.fence()
                Chunk.objects.bulk_create(rows)
        except IntegrityError:  # another job builds the same index, and is ahead
            raise Superseded from None

    def build_row(self, passage: Passage, vector: PackedVector) -> Chunk:
        return Chunk(
            index=self.index,
            document=self.document,
            number=passage.number,
            text=passage.text,
            text_hash=passage.hash,
            start=passage.start,
            end=passage.end,
            place=passage.place,
            metadata=self.document.metadata,
            embedder=self.index.embedder,
            scale=vector.scale,
            data=vector.data,
            is_pending=True,
        )

    def swap(self, count: int) -> None:
        """Replace the chunks of the document by the pending ones. Raise Superseded unless these are so many."""
        with transaction.atomic():
            self.fence()
            # Another job that builds the same index may have replaced the first of them already.
            if self.rows.filter(is_pending=True).count() != count:
                raise Superseded
            self.rows.filter(is_pending=False).delete()
            # An earlier attempt may have copied older metadata.
            self.rows.update(is_pending=False, metadata=self.document.metadata)
            IndexedDocument.objects.update_or_create(
                index=self.index,
                document=self.document,
                defaults={"source_hash": source_hash(self.document, self.index)},
            )


def known_vectors(index: KnowledgeIndex, hashes: Iterable[str]) -> dict[str, PackedVector]:
    """Return the vectors of texts that the base has already from the same embedder, by the hash of the text."""
    vectors: dict[str, PackedVector] = {}
    rows = Chunk.objects.filter(index__base=index.base_id, embedder=index.embedder)
    for batch in in_batches(sorted(hashes), HASHES_PER_QUERY):
        columns = rows.filter(text_hash__in=batch).values_list("text_hash", "scale", "data")
        vectors |= {digest: PackedVector(scale, bytes(data)) for digest, scale, data in columns}
    return vectors


def embed_new(
    embedder: Embedder, passages: Iterable[Passage], known: dict[str, PackedVector]
) -> dict[str, PackedVector]:
    """Return the vectors of the texts of passages that have none yet. Each text is embedded once."""
    texts = {passage.hash: passage.text for passage in passages if passage.hash not in known}
    return dict(zip(texts, embed_chunks(embedder, [*texts.values()]), strict=True)) if texts else {}


def own_document_fence(document: Document) -> Fence:
    """Return the fence of the job that a document names. It locks the base and the document."""

    def lock() -> None:
        lock_base(document.base_id)
        lock_row(Document.objects.filter(pk=document.pk, job_id=document.job_id))

    return lock


def document_fence(document: Document, index: KnowledgeIndex) -> Fence:
    """Return the fence of the job that a document names. It locks the base, the document and the index."""
    lock_document = own_document_fence(document)

    def lock() -> None:
        lock_document()
        lock_row(KnowledgeIndex.objects.filter(pk=index.pk))

    return lock


def lock_base(base_id: int) -> None:
    """Lock a base before its documents and indexes. Locks in another order could deadlock with `finish_rebuild`."""
    KnowledgeBase.objects.select_for_update().only("pk").filter(pk=base_id).first()


def lock_row(rows: QuerySet[Any]) -> None:
    if rows.select_for_update().only("pk").first() is None:
        raise Superseded
