"""Lookups for the API views of knowledge bases."""

from __future__ import annotations

from rest_framework.request import Request

from access_app.permissions import require_role
from access_app.role import Role
from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from agents_app.api.required_role import note_required_role
from knowledge_app.models import Document, KnowledgeBase, KnowledgeIndex


def get_base(request: Request, key: str, role: Role = Role.VIEWER) -> KnowledgeBase:
    """Return a base that the user may see. Raise NotFound for any other, and RoleRequired without the role."""
    base = KnowledgeBase.objects.for_user(request.user).select_related("index").filter(key=key).first()
    if base is None:
        raise NotFound(f"Knowledge base with id {key} not found")
    if role != Role.VIEWER:
        require_role(request.user, role, base.owner_id)
    note_required_role(role, base.owner_id)
    return base


def check_visible_base(request: Request, base_id: str) -> None:
    """Raise NotFound if the caller may not see a knowledge base."""
    get_base(request, base_id)


def get_document(base: KnowledgeBase, document_id: str) -> Document:
    """Return a document of a base. Raise NotFound."""
    key = parse_uuid(document_id)
    document = base.documents.without_content().filter(pk=key).first() if key else None
    if document is None:
        raise NotFound(f"Document with id {document_id} not found in knowledge base {base.key}")
    return document


def get_index(base: KnowledgeBase, name: str) -> KnowledgeIndex:
    """Return an index of a base that can be searched. Raise NotFound."""
    index = KnowledgeIndex.objects.filter(base=base, name=name, is_building=False).first()
    if index is None:
        raise NotFound(f"Index with name {name} not found in knowledge base {base.key}")
    return index
