"""The limits of each team: knowledge bases, documents and their size, and vectors that callers send."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Count, Sum

from access_app.quotas import require_team_quota
from access_app.role import SHARED_LABEL
from agentcms.db.locks import lock_name
from agentcms.errors import ApiError
from knowledge_app.models import Chunk, Document, KnowledgeBase, KnowledgeIndex


class QuotaExceeded(ApiError):
    """429: the team has too many of something, or too large ones. Waiting does not help."""

    def __init__(self, owner_id: str, limit: str, what: str, way_out: str) -> None:
        message = (
            f"The knowledge bases of {owner_id or SHARED_LABEL} may have {limit} in total, and {way_out}, or ask the "
            "operator to raise the limit."
        )
        super().__init__(429, message, f"{what}_quota_exceeded")


class DocumentQuotaExceeded(QuotaExceeded):
    """429: the team has no space for a document."""

    def __init__(self, owner_id: str, limit: str) -> None:
        super().__init__(
            owner_id, limit, "document", "this one does not fit. Delete documents that you no longer need"
        )


def require_document_quota(document: Document, size: int) -> None:
    """Raise DocumentQuotaExceeded if the team has no space for a document of this size in bytes.

    Call it in the transaction that stores the document: other documents of the team wait for its end. A document that
    becomes smaller always fits, so that a lower limit does not prevent that.
    """
    owner_id = document.base.owner_id
    lock_name(f"documents of {owner_id}")  # documents of other bases of the team count too
    bases = KnowledgeBase.objects.filter(owner_id=owner_id).values("pk")
    others = Document.objects.filter(base__in=bases).exclude(pk=document.pk).order_by()
    stored = others.aggregate(count=Count("pk"), size=Sum("size"))
    most = settings.KNOWLEDGE_DOCUMENTS_PER_TEAM
    if document._state.adding and stored["count"] >= most:
        raise DocumentQuotaExceeded(owner_id, f"{most:,} documents")
    grows = document._state.adding or size > document.size
    if grows and (stored["size"] or 0) + max(size, 1) > settings.KNOWLEDGE_BYTES_PER_TEAM:
        raise DocumentQuotaExceeded(owner_id, f"documents of {settings.KNOWLEDGE_BYTES_PER_TEAM >> 20:,} MB")


def require_base_quota(owner_id: str) -> None:
    """Raise ApiError if a team has as many knowledge bases as it may have. Call it as `require_team_quota`."""
    most = settings.KNOWLEDGE_BASES_PER_TEAM
    require_team_quota(KnowledgeBase.objects.all(), owner_id, most, "knowledge bases", "knowledge_quota_exceeded")


def require_vector_quota(base: KnowledgeBase, count: int) -> None:
    """Raise QuotaExceeded if the team has no space for this many more vectors that a caller sends.

    Call it in the transaction that stores them: other vectors of the team wait for its end. Those that a rebuild
    copies into another index count once.
    """
    # The rows to come cannot be locked, and those of open transactions are not counted.
    lock_name(f"vectors of {base.owner_id}")
    indexes = KnowledgeIndex.objects.filter(base__owner_id=base.owner_id, is_building=False)
    stored = Chunk.objects.filter(index__in=indexes.values("pk"), document=None).count()
    most = settings.KNOWLEDGE_VECTORS_PER_TEAM
    if stored + count > most:
        way_out = "these do not fit. Delete indexes that you no longer need"
        raise QuotaExceeded(base.owner_id, f"{most:,} vectors that were sent to the API", "vector", way_out)
