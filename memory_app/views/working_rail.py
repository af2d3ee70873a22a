"""The working memory beside a thread on its page."""

from __future__ import annotations

import json
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from agentcms.web.template_context import TemplateContext
from agents_app.configuration.memory.options import WorkingMemoryOptions
from memory_app.models import Thread
from memory_app.realms import user_realm
from memory_app.working import values
from memory_app.working.options import working_options_of
from memory_app.working.values import Holder


class ThreadMemory(NamedTuple):
    """The working memory beside a thread: its row and the options of the agent."""

    holder: Holder
    options: WorkingMemoryOptions

    @property
    def is_json(self) -> bool:
        return self.options.json_schema is not None

    @property
    def schema_text(self) -> str:
        return json.dumps(self.options.json_schema, ensure_ascii=False, indent=2) if self.is_json else ""


def find_thread_memory(thread: Thread) -> ThreadMemory | None:
    """Return the working memory beside a thread, or None if its agent has none and nothing is stored."""
    options = working_options_of(thread.agent)
    scope = options.scope if options else "resource"
    holder = thread if scope == "thread" or thread.resource is None else thread.resource
    if options is None and holder.working_revision == 0:
        return None
    return ThreadMemory(holder, options or WorkingMemoryOptions())


def may_read(request: HttpRequest, thread: Thread, memory: ThreadMemory) -> bool:
    """Return whether the user may read it. A participant reads a thread, but not what is known about its resource."""
    is_participant = thread.participants.filter(user=request.user.pk).exists()
    return thread.realm == user_realm(request.user.pk or 0) or memory.holder == thread or not is_participant


def rail_context(request: HttpRequest, thread: Thread) -> TemplateContext:
    """Return the context of the working memory beside a thread."""
    memory = find_thread_memory(thread)
    if memory is None or not may_read(request, thread, memory):
        return {"memory": None}
    value = values.read_memory(memory.holder)
    query = {"realm": request.GET["realm"]} if request.GET.get("realm") else {}
    url = reverse("threads:working_memory", args=[thread.key])
    # Its restoration undoes the last change. Revision 0 is the state before the first one.
    before = max(value.revision - 1, 0)
    return {
        "memory": memory,
        "memory_value": value,
        "memory_url": f"{url}?{urlencode(query)}" if query else url,
        "memory_undo_url": reverse("threads:restore_working_memory", args=[thread.key, before]),
    }
