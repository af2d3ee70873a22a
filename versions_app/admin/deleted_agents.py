"""The admin of the trash: deleted agents, which can be restored or deleted for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db import transaction
from django.db.models import QuerySet, Value
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join

from access_app.admin_base.confirmation import confirmation_page
from access_app.admin_base.lists import TeamColumnMixin
from access_app.admin_base.staff_access import ReadOnlyAdmin
from access_app.permissions import effective_role, require_granted_role
from access_app.role import Role
from agents_app.configuration.sub_agents import CircularReference
from agents_app.forms.actions import RestoreDeletedForm, TypedForm
from versions_app import trash
from versions_app.models import DeletedAgent

TRASH_ACTIONS = {"restore": ("Restore", Role.PUBLISHER), "purge": ("Delete for good", Role.MANAGER)}


@admin.register(DeletedAgent)
class DeletedAgentAdmin(TeamColumnMixin, ReadOnlyAdmin):
    """The deleted agents that the user may see."""

    list_display = ("name", "agent_key", "team", "version_count", "deleted_at", "deleted_by_name", "links")
    search_fields = ("name", "agent_key", "deleted_by_name")
    list_filter = ("deleted_at",)
    readonly_fields = (
        "name",
        "agent_key",
        "team",
        "version_count",
        "live_version_number",
        "deleted_at",
        "deleted_by_name",
        "kept_until",
        "links",
    )
    fields = readonly_fields
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[DeletedAgent]:
        """Return the visible deleted agents with `granted`, the user's role for each, which `links` reads."""
        deleted = DeletedAgent.objects.for_user(request.user)
        # Superusers need no membership, which is all that `with_role` reads.
        if request.user.is_superuser:
            highest = {"granted": Value(str(effective_role(request.user, None)))}
            return deleted.annotate(**highest)
        return deleted.with_role(request.user)

    def get_urls(self) -> list[URLPattern]:
        return [
            *(
                path(f"<uuid:deleted_id>/{name}/", self.action_view(name), name=f"versions_app_deletedagent_{name}")
                for name in TRASH_ACTIONS
            ),
            *super().get_urls(),
        ]

    def action_view(self, name: str) -> Callable[..., HttpResponse]:
        """Return the view of an action: a confirmation page, then the action on the locked record."""
        action = getattr(self, name)

        # Around the action, until whose end the record stays locked.
        @transaction.atomic
        def view(request: HttpRequest, deleted_id: UUID) -> HttpResponse:
            deleted = get_object_or_404(self.get_queryset(request).select_for_update(of=("self",)), pk=deleted_id)
            require_granted_role(request.user, TRASH_ACTIONS[name][1], deleted)
            response: HttpResponse = action(request, deleted)
            return response

        return self.admin_site.admin_view(view)

    def restore(self, request: HttpRequest, deleted: DeletedAgent) -> HttpResponse:
        """Restore an agent, under another ID if its own is taken."""
        form = RestoreDeletedForm(request.POST or None, own_id=deleted.agent_key)
        if form.is_valid():
            try:
                # A savepoint: the page with the error is rendered in this transaction, without the refused rows.
                with transaction.atomic():
                    agent = trash.restore_locked(deleted, form.cleaned_data["id"])
            except trash.RestoreRefused as error:
                form.add_error("id", str(error))
            except CircularReference as error:
                form.add_error("id", trash.circular_reference_message(error))
            else:
                self.message_user(request, f"{agent.name} was restored.", messages.SUCCESS)
                return redirect("admin:agents_app_agent_change", quote(agent.pk))
        return self.ask(request, deleted, form, "restore", f"Restore {deleted.name}?")

    def purge(self, request: HttpRequest, deleted: DeletedAgent) -> HttpResponse:
        """Delete an agent for good, after the user typed its name."""
        form = TypedForm(request.POST or None, expected=deleted.name)
        if form.is_valid():
            trash.purge_locked(deleted)
            self.message_user(request, f"{deleted.name} was deleted for good.", messages.SUCCESS)
            return redirect("admin:versions_app_deletedagent_changelist")
        return self.ask(request, deleted, form, "purge", f"Delete {deleted.name} for good?")

    def ask(
        self, request: HttpRequest, deleted: DeletedAgent, form: forms.Form, name: str, title: str
    ) -> HttpResponse:
        context = {"form": form, "verb": TRASH_ACTIONS[name][0], "deleted": deleted, "act": name}
        return confirmation_page(self, request, "versions_app/trash_action", title, **context)

    @admin.display(description="Kept until")
    def kept_until(self, deleted: DeletedAgent) -> str:
        return f"{deleted.removed_at:%B %-d, %Y}"

    @admin.display(description="Actions")
    def links(self, deleted: Any) -> str:
        """Return links to the actions that the user's role for the agent allows."""
        links = [
            (label, reverse(f"admin:versions_app_deletedagent_{name}", args=[deleted.pk]))
            for name, (label, role) in TRASH_ACTIONS.items()
            if Role(deleted.granted or Role.VIEWER).covers(role)
        ]
        return format_html_join(" · ", '<a href="{1}">{0}</a>', links) or "–"
