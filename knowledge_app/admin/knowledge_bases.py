"""Admin of knowledge bases and their documents: figures, errors, and indexing again. Their pages change them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_base.lists import TeamColumnMixin
from access_app.admin_base.staff_access import StaffAccessMixin
from access_app.admin_base.staff_roles import staff_has_role
from access_app.permissions import has_role
from access_app.role import Role
from agents_app.configuration.sub_agents import listed_agents, name_agents
from knowledge_app.indexing.jobs import enqueue_reindexing
from knowledge_app.models import Chunk, Document, KnowledgeBase
from knowledge_app.used_by import find_searching_agents


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(TeamColumnMixin, StaffAccessMixin, admin.ModelAdmin):
    """The knowledge bases of a user's teams. Publishers delete them, and editors index them again."""

    list_display = ("name", "key", "team", "embedder", "document_count", "failed_count", "updated_at")
    list_filter = ("embedder",)
    search_fields = ("key", "name", "description")
    readonly_fields = (
        *("key", "name", "description", "team", "embedder", "chunk_size", "chunk_overlap", "filterable", "rerank"),
        *("document_count", "failed_count", "chunk_count", "page", "created_at", "updated_at"),
    )
    fields = readonly_fields
    actions = ("index_again",)
    action_roles: ClassVar = {"index_again": Role.EDITOR}

    def get_queryset(self, request: HttpRequest) -> QuerySet[KnowledgeBase]:
        """Return the bases with the numbers of their documents, which the list would count for each row."""
        documents = Document.objects.filter(base=OuterRef("pk")).order_by().values("base")
        failed = documents.filter(status=Document.Status.FAILED)
        counts = {"all_documents": documents, "failed_documents": failed}
        return (
            KnowledgeBase.objects.for_user(request.user)
            .select_related("index")
            .annotate(
                **{name: Subquery(rows.annotate(Count("pk")).values("pk__count")) for name, rows in counts.items()}
            )
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # the page creates one with its index

    def has_change_permission(self, request: HttpRequest, obj: KnowledgeBase | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: KnowledgeBase | None = None) -> bool:
        if not self.has_module_permission(request):
            return False
        if obj is None:
            return staff_has_role(request, Role.PUBLISHER)
        return has_role(request.user, Role.PUBLISHER, obj.owner_id)

    def get_deleted_objects(self, objs: Iterable[KnowledgeBase], request: HttpRequest) -> Any:
        """Return the bases with the numbers of what is deleted with them. Django would load all of it to list it."""
        bases = [*objs]
        documents = Document.objects.filter(base__in=bases)
        counts = {
            KnowledgeBase._meta.verbose_name_plural: len(bases),
            Document._meta.verbose_name_plural: documents.count(),
            Chunk._meta.verbose_name_plural: Chunk.objects.filter(index__base__in=bases).count(),
        }
        forbidden = [str(base) for base in bases if not self.has_delete_permission(request, base)]
        protected = (
            [f"Deleting a knowledge base needs the Publisher role in its team: {', '.join(forbidden)}."]
            if forbidden
            else []
        )
        listed = [entry for base in bases for entry in (str(base), searching_agents(request, base)) if entry]
        return listed, counts, set(), protected

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[KnowledgeBase]) -> None:
        for base in queryset:
            base.delete()  # locks the base, which the deletion of a queryset does not

    @admin.action(description="Index selected knowledge bases again")
    def index_again(self, request: HttpRequest, bases: QuerySet[KnowledgeBase]) -> None:
        # Actions take all rows that staff see. The role may be missing in the team of some.
        rows = [base for base in bases if has_role(request.user, Role.EDITOR, base.owner_id)]
        for base in rows:
            enqueue_reindexing(base, request.user)
        hint = "Only an editor of its team can have a knowledge base indexed again."
        self.report_action(request, len(rows), len(bases), "knowledge base", "queued to be indexed again.", hint)

    @admin.display(description="documents")
    def document_count(self, base: KnowledgeBase) -> int:
        return getattr(base, "all_documents", None) or 0

    @admin.display(description="failed documents")
    def failed_count(self, base: KnowledgeBase) -> int:
        return getattr(base, "failed_documents", None) or 0

    @admin.display(description="chunks")
    def chunk_count(self, base: KnowledgeBase) -> int:
        return Chunk.objects.of_base(base).count()

    @admin.display(description="page")
    def page(self, base: KnowledgeBase) -> str:
        return format_html('<a href="{}">Open</a>', reverse("knowledge:view", args=[base.key]))


def searching_agents(request: HttpRequest, base: KnowledgeBase) -> list[str]:
    """Return a sentence with the agents that lose a base with its deletion, as a list for the page. Empty without."""
    names = name_agents(listed_agents(request.user, find_searching_agents(base)))
    return [f"These agents search it and will run without it: {names}."] if names else []
