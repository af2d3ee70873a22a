"""Admin of the vectors of messages, without texts."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_base.lists import list_text
from access_app.admin_base.staff_access import ReadOnlyAdmin
from agentcms.vectors import UnknownEmbedder, find_embedder
from memory_app.admin.oldest_first import oldest_conversations
from memory_app.models import Vector
from memory_app.recall.indexing import enqueue_message_indexing


@admin.register(Vector)
class VectorAdmin(ReadOnlyAdmin):
    """Vectors by embedder and conversation. Only superusers see them, and have conversations indexed again."""

    list_display = ("__str__", "embedder", "conversation", "owner", "dimensions", "created_at")
    list_filter = ("embedder", "created_at")
    search_fields = ("thread__key", "resource__key", "embedder")
    list_select_related = ("thread", "resource")
    # Django would also count the whole table, which has rows of every message.
    show_full_result_count = False
    ordering = ("-id",)
    fields = ("embedder", "conversation", "owner", "part", "dimensions", "scale", "created_at")
    actions = ("index_again",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) and request.user.is_superuser

    @admin.display(description="Thread", ordering="thread")
    def conversation(self, vector: Vector) -> str:
        if vector.thread.experiment_id is not None:  # threads of experiments have no page
            return vector.thread.key
        # A realm has the name of a team, such as R&D.
        url = f"{reverse('threads:view', args=[vector.thread.key])}?{urlencode({'realm': vector.thread.realm})}"
        return format_html('<a href="{}">{}</a>', url, vector.thread.key)

    @admin.display(description="Resource", ordering="resource")
    def owner(self, vector: Vector) -> str:
        return str(vector.resource or "–")

    @admin.display(description="Numbers")
    def dimensions(self, vector: Vector) -> int:
        return len(vector.data)

    @admin.action(description="Index again: the whole conversations of the selected vectors")
    def index_again(self, request: HttpRequest, vectors: QuerySet[Vector]) -> None:
        """Delete the vectors of these conversations by the same embedder, and let a worker make them again."""
        unknown = unavailable_embedders(vectors.order_by().values_list("embedder", flat=True).distinct())
        pairs = oldest_conversations(request, vectors.exclude(embedder__in=unknown), "thread", "embedder")
        for thread_id, embedder in pairs:
            with transaction.atomic():
                Vector.objects.filter(thread=thread_id, embedder=embedder).delete()
                enqueue_message_indexing(thread_id, embedder)
        noun = "conversation is" if len(pairs) == 1 else "conversations are"
        if pairs:
            messages.success(request, f"{len(pairs):,} {noun} indexed again. The jobs show the progress.")
        if unknown:
            messages.warning(request, f"Vectors of embedders that are not available stay: {list_text(unknown)}.")


def unavailable_embedders(embedders: Iterable[str]) -> list[str]:
    """Return the names of embedders that are not available here, which could make no vectors again."""
    unavailable = []
    for name in sorted(embedders):
        try:
            find_embedder(name)
        except UnknownEmbedder:
            unavailable.append(name)
    return unavailable
