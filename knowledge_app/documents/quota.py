"""The limits of each team: the number of its documents, and their size."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Count, Sum

from access_app.role import SHARED_LABEL
from agentcms.db.locks import lock_name
from agentcms.errors import ApiError
from knowledge_app.models import Document, KnowledgeBase


class DocumentQuotaExceeded(ApiError):
    """429: the team has too many documents, or too large ones. Waiting does not help."""

    def __init__(self, limit: str, owner_id: str) -> None:
        message = (
            f"The knowledge bases of {owner_id or SHARED_LABEL} may have {limit} in total, and this one does not fit. "
            "Delete documents that you no longer need, or ask the operator to raise the limit."
        )
        super().__init__(429, message, "document_quota_exceeded")


def require_quota(document: Document, size: int) -> None:
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
        raise DocumentQuotaExceeded(f"{most:,} documents", owner_id)
    grows = document._state.adding or size > document.size
    if grows and (stored["size"] or 0) + max(size, 1) > settings.KNOWLEDGE_BYTES_PER_TEAM:
        raise DocumentQuotaExceeded(f"documents of {settings.KNOWLEDGE_BYTES_PER_TEAM >> 20:,} MB", owner_id)
