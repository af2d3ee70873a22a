"""Admin of conversations: figures. Opening the texts of one is recorded in the admin log."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import unquote
from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html

from access_app.admin_access import ReadOnlyAdmin
from memory_app.history.wire_messages import wire_messages
from memory_app.models import Thread

MESSAGES_SHOWN = 200
OPENED_MESSAGE = "Opened the texts of this conversation."


@admin.register(Thread)
class ThreadAdmin(ReadOnlyAdmin):
    """Conversations without their texts."""

    list_display = ("key", "realm", "resource_key", "agent_key", "message_count", "created_at", "updated_at")
    list_filter = ("updated_at",)
    search_fields = ("key", "realm", "resource_key", "agent_key")
    ordering = ("-updated_at", "-id")
    fields = (
        "key",
        "realm",
        "resource_key",
        "user",
        "agent_key",
        "message_count",
        "token_count",
        "working_revision",
        "created_at",
        "updated_at",
        "texts",
    )
    readonly_fields = ("message_count", "token_count", "texts")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Thread]:
        heads = Count("messages", filter=Q(messages__head_number=F("messages__number")))
        rows = Thread.objects.readable_on_pages(request.user)
        return rows.annotate(messages_counted=heads, tokens_counted=Sum("messages__tokens"))

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.texts_view)
        return [path("<path:object_id>/texts/", view, name="memory_app_thread_texts"), *super().get_urls()]

    def texts_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the newest messages of a conversation, and record who opened them."""
        thread = self.get_object(request, unquote(object_id)) if self.has_view_permission(request) else None
        if thread is None:
            raise Http404
        LogEntry.objects.log_actions(request.user.pk or 0, [thread], CHANGE, OPENED_MESSAGE, single_object=True)
        rows = [*thread.messages.order_by("-number")[:MESSAGES_SHOWN]][::-1]
        context = {
            **self.admin_site.each_context(request),
            "title": f"Texts of {thread.key}",
            "opts": self.opts,
            "thread": thread,
            "entries": wire_messages(thread, rows),
        }
        return TemplateResponse(request, "admin/memory_app/thread/texts.html", context)

    @admin.display(description="Messages", ordering="messages_counted")
    def message_count(self, thread: Any) -> int:
        return int(thread.messages_counted)

    @admin.display(description="Tokens")
    def token_count(self, thread: Any) -> int:
        return int(thread.tokens_counted or 0)

    @admin.display(description="Texts")
    def texts(self, thread: Thread) -> str:
        url = reverse("admin:memory_app_thread_texts", args=[thread.pk])
        return format_html('<a href="{}">Open the texts</a> This is recorded in the admin log.', url)
