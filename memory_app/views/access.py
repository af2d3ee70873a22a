"""The threads that a signed-in user reads on pages, and those to which the user writes."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from access_app.permissions import granted_covers, granted_role, has_role
from access_app.role import Role
from memory_app.models import Thread
from memory_app.views.links import own_realm


def readable_threads(request: HttpRequest) -> QuerySet[Thread]:
    """Return the threads that the user may read, with their agents."""
    return (
        Thread.objects.readable_on_pages(request.user)
        .select_related("agent__active_version", "resource", "user")
        .exclude(realm=None)  # rows of the previous release, which no link can name
    )


def get_page_thread(request: HttpRequest, key: str) -> Thread:
    """Return a thread that the user may read. Without a realm in the query, it is the user's own."""
    realm = request.GET.get("realm") or own_realm(request)
    return get_with_visible_agent(request, readable_threads(request), key, realm)


def get_with_visible_agent(request: HttpRequest, threads: QuerySet[Thread], key: str, realm: str) -> Thread:
    """Return one of the threads. If the user may not see its agent, as if that was deleted: do not save it then.

    Who left the team of the agent keeps the thread, but no longer reads the configuration of its memory.
    """
    rows = threads.annotate(agent_role=granted_role(request.user, "agent__owner_id"))
    thread = get_object_or_404(rows, key=key, realm=realm)
    if not granted_covers(request.user, Role.VIEWER, vars(thread)["agent_role"]):
        thread.agent = None
    return thread


def takes_part(request: HttpRequest, thread: Thread) -> bool:
    """Return whether the thread is the user's own, or the user is a participant. Publishers only read."""
    return thread.realm == own_realm(request) or thread.participants.filter(user=request.user.pk).exists()


def may_send(request: HttpRequest, thread: Thread) -> bool:
    """Return whether the user may write to the thread, which needs the role that running its agent needs."""
    agent = thread.agent
    if agent is None or agent.archived_at is not None or not takes_part(request, thread):
        return False
    return has_role(request.user, Role.EDITOR, agent.owner_id)
