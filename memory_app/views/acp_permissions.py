"""Permissions of ACP agents for a whole conversation, which people take back."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from memory_app.views.access import get_page_thread
from memory_app.views.links import thread_url
from tools_app.acp.permissions import thread_permissions


@require_POST
@login_required
def revoke_permission(request: HttpRequest, key: str, permission_id: int) -> HttpResponse:
    """Take back a permission of a thread that the user may read."""
    thread = get_page_thread(request, key)
    permission = get_object_or_404(thread_permissions(thread.pk), pk=permission_id)
    permission.delete()
    messages.success(request, f"{permission.agent} asks again: {permission.title}.")
    return redirect(thread_url(request, thread))
