"""Memory of a run, for its page: the messages it was given, and the revision of the working memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from access_app.caller import Caller
from access_app.permissions import has_role
from access_app.role import Role
from agentcms.wire.json_types import JSONObject
from memory_app.models import Observation, Participant, Thread, WorkingRevision
from memory_app.realms import user_realm
from runs_app.models import AgentRun


class RunMemory(NamedTuple):
    """Memory of a run. A value is None if the run had no such memory; a text may have been deleted meanwhile."""

    thread_url: str
    messages: int | None
    scope: str
    revision: int | None
    text: str
    observed_until: int | None  # the last message in whose place an observation stood
    observations: str


def build_memory(run: AgentRun, user: Caller) -> RunMemory | None:
    """Return the memory of a run, or None if it had none."""
    stored: JSONObject = run.remembered if isinstance(run.remembered, dict) else {}
    if not {"messages", "workingMemory", "observations"} & stored.keys():
        return None
    working: JSONObject = stored.get("workingMemory") or {}
    scope, revision = str(working.get("scope", "")), working.get("revision")
    observed: JSONObject = stored.get("observations") or {}
    thread = find_readable_thread(run, user)
    return RunMemory(
        "" if thread is None else url_of_thread(thread),
        stored.get("messages"),
        scope,
        revision,
        find_text(run, scope, revision, user),
        observed.get("last"),
        find_observations(thread, observed.get("ids") or []),
    )


def find_readable_thread(run: AgentRun, user: Caller) -> Thread | None:
    """Return the thread of a run if the user may read its page. Threads of experiments have none."""
    if run.thread is None or not Thread.objects.readable_on_pages(user).filter(pk=run.thread.pk).exists():
        return None
    return run.thread


def find_observations(thread: Thread | None, ids: Sequence[int]) -> str:
    """Return the observations of a thread that a run was given."""
    if thread is None or not ids:
        return ""
    rows = Observation.objects.filter(pk__in=ids, thread=thread).order_by("first")
    return "\n".join(rows.values_list("text", flat=True))


def url_of_thread(thread: Thread) -> str:
    """Return the URL of the page of a thread, or a blank text for one without a realm, which has none."""
    if thread.realm is None:
        return ""
    url = reverse("threads:view", args=[thread.key])
    return f"{url}?{urlencode({'realm': thread.realm})}"


def find_text(run: AgentRun, scope: str, revision: int | None, user: Caller) -> str:
    """Return the text of a revision, or a blank text if it is no longer stored or the user may not read it."""
    if not revision or (scope == "resource" and not may_read_resource(run, user)):
        return ""
    rows = WorkingRevision.objects.filter(revision=revision)
    rows = rows.filter(thread=run.thread_id) if scope == "thread" else rows.filter(resource=run.resource_id)
    return rows.values_list("value", flat=True).first() or ""


def may_read_resource(run: AgentRun, user: Caller) -> bool:
    """Return whether a user may read what is known about the resource of a run: its user, and publishers.

    A participant may not, and earlier releases gave it to their runs.
    """
    if run.resource is not None and run.resource.realm == user_realm(user.pk or 0):
        return True
    is_participant = Participant.objects.filter(thread=run.thread_id, user=user.pk).exists()
    return not is_participant and has_role(user, Role.PUBLISHER, run.owner_id)
