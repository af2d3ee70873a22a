"""The versions of an agent over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.authentication import with_recalled_key
from access_app.callers import CallerKind, asked_by
from access_app.roles import Role
from agentcms.ids import read_id
from agentcms.json_views import JSONView
from agentcms.query import OrderBy, Query, page_text
from agentcms.rest import body_object
from agents_app.api import DRAFT_HINT, named_version, no_version
from agents_app.bodies import Said, publishes, read_parts, saying
from agents_app.changes import change
from agents_app.http import agent_reply, hold, is_strict, json_reply, missing, refuse_warnings, reply
from agents_app.once import once
from versions_app.answers import HEAD, PAGE, SOME, Pointers, Row, comparison_text, version_text
from versions_app.bodies import Description, read_description
from versions_app.models import AgentVersion

Found = dict[str, tuple[Row, Pointers]]

ORDER = {"versionNumber": "version_number", "createdAt": "created_at"}
NEWEST = OrderBy("versionNumber")
NOBODY = UUID(int=0)


class VersionsView(JSONView):
    """The history of an agent, and snapshots by hand."""

    @with_recalled_key
    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with Query(request) as query:
            paging = query.paging(20)
            order = query.order_by(tuple(ORDER), NEWEST)
        pointers, total = pointers_and_total(request, agent_id)
        sign = "-" if order.direction == "DESC" else ""
        columns = dict.fromkeys((f"{sign}{ORDER[order.field]}", f"{sign}version_number"))
        page = PAGE(tuple(columns), agent_id=agent_id, limit=(paging.per_page, paging.start))

        shown = [version_text(Row(*row), pointers) for row in page]

        return reply(page_text("versions", shown, total, paging.page, paging.per_page))

    @once
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        (said,) = read_parts(body_object(request), Description)
        with transaction.atomic():
            agent = hold(request, agent_id, Role.EDITOR)
            with change(message=said.get("change_message") or "", name=said.get("name") or ""):
                version = AgentVersion.objects.snapshot_locked(agent, pinned=bool(said.get("pinned")))
            return reply(version_text(Row.of(version), Pointers.of(agent)), 201)


class VersionView(JSONView):
    """One version."""

    @with_recalled_key
    def get(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        ((row, pointers),) = find(request, agent_id, version_id)
        return reply(version_text(row, pointers))

    def patch(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        said = read_description(body_object(request))
        with transaction.atomic():
            agent = hold(request, agent_id, Role.EDITOR)
            version = named_version(agent, version_id)
            version.describe_locked(**said)
            return reply(version_text(Row.of(version), Pointers.of(agent)))

    def delete(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        with transaction.atomic():
            agent = hold(request, agent_id, Role.PUBLISHER)
            version = named_version(agent, version_id)
            version.remove_locked(agent)
            return json_reply({"success": True, "message": f"Version {version.version_number} was deleted"})


class ActivateView(JSONView):
    """Make a version live."""

    @once
    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (said,) = read_parts(body_object(request), Said)
        strict = is_strict(request)
        with transaction.atomic(), saying(said):
            agent = hold(request, agent_id, Role.PUBLISHER)
            version = named_version(agent, version_id)
            version.activate_locked(agent)
            if strict:
                refuse_warnings(agent, version)
            message = f"Version {version.version_number} is now active"
            return json_reply({"success": True, "message": message, "activeVersionId": version.pk})


class RestoreView(JSONView):
    """An old picture as a new version."""

    @once
    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (said,) = read_parts(body_object(request), Said)
        strict = is_strict(request)
        role, hint = (Role.PUBLISHER, DRAFT_HINT) if publishes(said) else (Role.EDITOR, "")
        with transaction.atomic(), saying(said):
            agent = hold(request, agent_id, role, hint)
            version = named_version(agent, version_id).restore_locked(agent)
            if strict:
                refuse_warnings(agent, version)
            return reply(version_text(Row.of(version), Pointers.of(agent)))


class CompareView(JSONView):
    """What differs between two versions of one agent."""

    @with_recalled_key
    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with Query(request) as query:
            names = [query.text(name) for name in ("from", "to")]
            for name, value in zip(("from", "to"), names, strict=True):
                if not value:
                    query.refuse(name, "Give the id of a version, live or head.")
        (before, pointers), (after, _) = find(request, agent_id, *map(str, names), words=("live", "head"))
        return reply(comparison_text(before, after, pointers))


class DiscardDraftView(JSONView):
    """Return the head to what is live."""

    @once
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        body_object(request)
        with transaction.atomic():
            agent = hold(request, agent_id, Role.EDITOR)
            AgentVersion.objects.discard_draft_locked(agent)
            return agent_reply(agent, agent.active_version)


def pointers_and_total(request: Request, agent_id: str) -> tuple[Pointers, int]:
    """Which versions of an agent are live and head, and how many there are."""
    found = HEAD(CallerKind.of(request.user), agent_id=agent_id, **asked_by(request.user))
    if not found:
        raise missing(agent_id)
    *pointers, total = found[0]
    return Pointers(*pointers), total or 0


def find(request: Request, agent_id: str, *names: str, words: tuple[str, ...] = ()) -> list[tuple[Row, Pointers]]:
    """Versions of one agent, two at most, by their ids or by the words allowed; one query."""
    asked = [name.lower() for name in names]
    found = look(request, agent_id, asked, [word for word in words if word in asked])
    for name in names:
        if name.lower() not in found:
            # Live is always there, so whoever may see the agent finds something.
            seen = look(request, agent_id, asked, ["live"])
            raise no_version(agent_id, name) if seen else missing(agent_id)
    return [found[name] for name in asked]


def look(request: Request, agent_id: str, names: Sequence[str], words: Sequence[str]) -> Found:
    """The versions among these that are there, by id; live and head by these words, if any is asked for."""
    a, b = [read_id(name) or NOBODY for name in (*names, "")][:2]
    variant = (CallerKind.of(request.user), bool(words))
    found: Found = {}
    for values in SOME(variant, agent_id=agent_id, a=a, b=b, **asked_by(request.user)):
        row, pointers = Row(*values[:-2]), Pointers(agent_id, *values[-2:])
        found[str(row.id)] = (row, pointers)
        found |= {word: found[str(row.id)] for word in words if row.id == getattr(pointers, f"{word}_id")}
    return found
