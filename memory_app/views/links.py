"""Links to the pages of conversations."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from memory_app.models import Thread
from memory_app.realms import user_realm


def own_realm(request: HttpRequest) -> str:
    return user_realm(request.user.pk or 0)


def thread_url(request: HttpRequest, thread: Thread, name: str = "view") -> str:
    """Return the URL of a page of a thread. That of another realm has the realm in its query."""
    url = reverse(f"threads:{name}", args=[thread.key])
    return url if thread.realm == own_realm(request) else f"{url}?{urlencode({'realm': thread.realm})}"


def message_url(request: HttpRequest, thread: Thread, number: int) -> str:
    """Return the URL of the page of a thread that has a message, at the message. It begins with the row `number`."""
    url = thread_url(request, thread)
    return f"{url}{'&' if '?' in url else '?'}{urlencode({'message': number})}#message-{number}"
