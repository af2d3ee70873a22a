"""Admin of conversations: figures. Opening the texts of one is recorded in the admin log."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import unquote
from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from access_app.admin_base.confirmation import confirmation_page
from access_app.admin_base.staff_access import ReadOnlyAdmin
from access_app.models import printable_id
from memory_app.history.threads import move_thread
from memory_app.history.wire_messages import wire_messages
from memory_app.models import Message, Resource, Thread
from memory_app.realms import MAX_KEY_LENGTH, describe_realm, user_realm

MESSAGES_SHOWN = 200
OPENED_MESSAGE = "Opened the texts of this conversation."


@admin.register(Thread)
class ThreadAdmin(ReadOnlyAdmin):
    """Conversations without their texts."""

    list_display = ("key", "realm_name", "resource_name", "agent_key", "message_count", "created_at", "updated_at")
    list_select_related = ("user",)
    list_filter = ("updated_at",)
    search_fields = ("key", "realm", "resource_key", "agent_key")
    ordering = ("-updated_at", "-id")
    fields = (
        "key",
        "realm_name",
        "resource_key",
        "user",
        "agent_key",
        "message_count",
        "token_count",
        "working_revision",
        "created_at",
        "updated_at",
        "texts",
        "transfer",
    )
    readonly_fields = ("realm_name", "message_count", "token_count", "texts", "transfer")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Thread]:
        # Not by a join: the database would count the messages of all threads for each page of the list.
        heads = Message.objects.filter(thread=OuterRef("pk"), head_number=F("number")).order_by().values("thread")
        count = Coalesce(Subquery(heads.values_list(Count("pk"))), 0)
        return Thread.objects.readable_on_pages(request.user).annotate(messages_counted=count)

    def get_fields(self, request: HttpRequest, obj: Thread | None = None) -> Any:
        fields = super().get_fields(request, obj)
        return fields if request.user.is_superuser else [field for field in fields if field != "transfer"]

    def get_urls(self) -> list[URLPattern]:
        texts, transfer = map(self.admin_site.admin_view, (self.texts_view, self.transfer_view))
        return [
            path("<path:object_id>/texts/", texts, name="memory_app_thread_texts"),
            path("<path:object_id>/transfer/", transfer, name="memory_app_thread_transfer"),
            *super().get_urls(),
        ]

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

    def transfer_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Give a conversation to another resource of its realm, after a form that asks for it. Superusers only."""
        thread = self.get_object(request, unquote(object_id)) if request.user.is_superuser else None
        if thread is None:
            raise Http404
        form = TransferForm(request.POST or None, thread=thread)
        if request.method == "POST" and form.is_valid():
            before, target = thread.resource_key, form.cleaned_data["resource"]
            move_thread(thread, find_resource(thread, target))
            message = f"Transferred from the resource {before} to {target}."
            LogEntry.objects.log_actions(request.user.pk or 0, [thread], CHANGE, message, single_object=True)
            messages.success(request, f"The thread belongs to {target} now.")
            return redirect("admin:memory_app_thread_change", thread.pk)
        context = {"thread": thread, "form": form}
        response = confirmation_page(self, request, "memory_app/thread/transfer", f"Transfer {thread.key}", **context)
        response.status_code = 422 if form.errors else 200
        return response

    @admin.display(description="Realm", ordering="realm")
    def realm_name(self, thread: Thread) -> str:
        username = thread.user.get_username() if thread.user and thread.realm == user_realm(thread.user.pk) else ""
        return describe_realm(str(thread.realm), username)

    @admin.display(description="Resource", ordering="resource_key")
    def resource_name(self, thread: Thread) -> str:
        return thread.resource_name

    @admin.display(description="Messages", ordering="messages_counted")
    def message_count(self, thread: Any) -> int:
        return int(thread.messages_counted)

    @admin.display(description="Tokens")
    def token_count(self, thread: Thread) -> int:
        return int(thread.messages.aggregate(tokens=Sum("tokens"))["tokens"] or 0)

    @admin.display(description="Texts")
    def texts(self, thread: Thread) -> str:
        url = reverse("admin:memory_app_thread_texts", args=[thread.pk])
        return format_html('<a href="{}">Open the texts</a> This is recorded in the admin log.', url)

    @admin.display(description="Resource")
    def transfer(self, thread: Thread) -> str:
        url = reverse("admin:memory_app_thread_transfer", args=[thread.pk])
        return format_html('<a href="{}">Transfer to another resource</a>', url)


class TransferForm(forms.Form):
    """The resource to which a thread is given."""

    resource = forms.CharField(
        label="Resource ID",
        max_length=MAX_KEY_LENGTH,
        validators=[printable_id],
        help_text="An ID in the same realm. The resource is created if it does not exist.",
    )
    # The resource that the page names: somebody may have transferred the thread since.
    opened_resource = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, thread: Thread, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.thread = thread
        self.fields["opened_resource"].initial = thread.resource_key

    def clean_resource(self) -> str:
        key: str = self.cleaned_data["resource"]
        if key == self.thread.resource_key:
            raise forms.ValidationError("The thread belongs to this resource already. Enter another one.")
        resources = Resource.objects.filter(realm=self.thread.realm, key__in=[key, self.thread.resource_key])
        # The job that deletes the data of one of them would delete the thread with it, or not find it any more.
        if (row := resources.filter(forgetting_since__isnull=False).first()) is not None:
            raise forms.ValidationError(f"All data of the resource {row.key} is being deleted. Try again shortly.")
        return key

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        opened = cleaned.get("opened_resource")
        if opened and opened != self.thread.resource_key:
            text = (
                f"The thread was transferred to {self.thread.resource_key} since you opened this page. Open it again."
            )
            self.add_error("resource", text)
        return cleaned


def find_resource(thread: Thread, key: str) -> Resource:
    """Return the resource with this key in the realm of a thread, which is created if it does not exist."""
    realm = str(thread.realm)
    # The resources of a user are deleted with the account, those of end users are not.
    user_id = int(realm[1:]) if realm.startswith("u") else None
    resource, _ = Resource.objects.get_or_create(realm=realm, key=key, defaults={"user_id": user_id})
    return resource
