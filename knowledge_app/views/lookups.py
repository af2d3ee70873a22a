"""Lookups and permissions of the pages of knowledge bases."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from access_app.permissions import has_role, require_role
from access_app.role import SHARED_LABEL, Role
from agentcms.web.template_context import TemplateContext
from agents_app.views.access import selectable_owners
from knowledge_app.models import Document, KnowledgeBase


def get_page_base(request: HttpRequest, key: str, role: Role = Role.VIEWER) -> KnowledgeBase:
    """Return a base that the user may see. Raise Http404 for any other, and RoleRequired without the role."""
    rows = KnowledgeBase.objects.for_user(request.user).select_related("index")
    base = get_object_or_404(rows, key=key)
    if role != Role.VIEWER:
        require_role(request.user, role, base.owner_id)
    return base


def get_page_document(base: KnowledgeBase, document_id: UUID) -> Document:
    # The page shows the extracted text, not the content.
    return get_object_or_404(base.documents.defer("content"), pk=document_id)


def base_permissions(request: HttpRequest, base: KnowledgeBase) -> TemplateContext:
    """Return the template context with what the user may do."""
    may_edit = has_role(request.user, Role.EDITOR, base.owner_id)
    may_publish = has_role(request.user, Role.PUBLISHER, base.owner_id)
    team = base.owner_id or SHARED_LABEL
    limits = ""
    if not may_edit:
        limits = f"You can read and search this knowledge base. Adding documents needs the Editor role in {team}."
    return {"may_edit": may_edit, "may_publish": may_publish, "limits": limits}


def publisher_owners(request: HttpRequest) -> list[str]:
    """Return the teams in which the user may create knowledge bases."""
    return selectable_owners(request.user, Role.PUBLISHER)
