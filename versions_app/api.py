"""The versions of an agent over HTTP."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Count, F, IntegerField, OuterRef, Q, Subquery
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.roles import Role
from agentcms.json_views import JSONView
from agentcms.query import OrderBy, Query, page_text
from agentcms.rest import body_object
from agents_app.api import DRAFT_HINT, named_version, no_version, version_id_of
from agents_app.bodies import Said, publishes, read_parts, saying
from agents_app.changes import change
from agents_app.http import agent_reply, hold, json_reply, missing, reply, visible
from versions_app.answers import Pointers, Row, comparison_text, rows, version_text
from versions_app.bodies import Description, read_description
from versions_app.models import AgentVersion

ORDER = {"versionNumber": "version_number", "createdAt": "created_at"}
NEWEST = OrderBy("versionNumber")
WORDS = {"live": "agent__active_version", "head": "agent__head_version"}


class VersionsView(JSONView):
    """The history of an agent, and snapshots by hand."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with Query(request) as query:
            paging = query.paging(20)
            order = query.order_by(tuple(ORDER), NEWEST)
        versions = AgentVersion.objects.order_by()
        total = versions.filter(agent=OuterRef("pk")).values("agent").annotate(total=Count("pk")).values("total")
        agents = visible(request).filter(pk=agent_id).annotate(total=Subquery(total, IntegerField()))
        agent = agents.values_list("pk", "active_version_id", "head_version_id", "total").first()
        if agent is None:
            raise missing(agent_id)
        pointers = Pointers(*agent[:3])
        sign = "-" if order.direction == "DESC" else ""
        page = rows(
            versions.filter(agent_id=agent_id).order_by(f"{sign}{ORDER[order.field]}", f"{sign}version_number")
        )

        shown = [version_text(Row(*row), pointers) for row in page[paging.start : paging.stop]]

        return reply(page_text("versions", shown, agent[3] or 0, paging.page, paging.per_page))

    def post(self, request: Request, agent_id: str) -> HttpResponse:
        (said,) = read_parts(body_object(request), Description)
        with transaction.atomic():
            agent = hold(request, agent_id, Role.EDITOR)
            with change(message=said.get("change_message") or "", name=said.get("name") or ""):
                version = AgentVersion.objects.snapshot_locked(agent, pinned=bool(said.get("pinned")))
            return reply(version_text(Row.of(version), Pointers.of(agent)), 201)


class VersionView(JSONView):
    """One version."""

    def get(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        row, pointers = find(request, agent_id, version_id)
        return reply(version_text(row, pointers))

    def patch(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        said = read_description(body_object(request))
        with transaction.atomic():
            agent = hold(request, agent_id, Role.EDITOR)
            version = named_version(agent, version_id)
            version.describe(**said)
            return reply(version_text(Row.of(version), Pointers.of(agent)))

    def delete(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        with transaction.atomic():
            agent = hold(request, agent_id, Role.PUBLISHER)
            version = named_version(agent, version_id)
            version.remove_locked(agent)
            return json_reply({"success": True, "message": f"Version {version.version_number} was deleted"})


class ActivateView(JSONView):
    """Make a version live."""

    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (said,) = read_parts(body_object(request), Said)
        with transaction.atomic(), saying(said):
            agent = hold(request, agent_id, Role.PUBLISHER)
            version = named_version(agent, version_id)
            version.activate_locked(agent)
            message = f"Version {version.version_number} is now active"
            return json_reply({"success": True, "message": message, "activeVersionId": version.pk})


class RestoreView(JSONView):
    """An old picture as a new version."""

    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (said,) = read_parts(body_object(request), Said)
        role, hint = (Role.PUBLISHER, DRAFT_HINT) if publishes(said) else (Role.EDITOR, "")
        with transaction.atomic(), saying(said):
            agent = hold(request, agent_id, role, hint)
            version = named_version(agent, version_id).restore_locked(agent)
            return reply(version_text(Row.of(version), Pointers.of(agent)))


class CompareView(JSONView):
    """What differs between two versions of one agent."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with Query(request) as query:
            names = [query.text(name) for name in ("from", "to")]
            for name, value in zip(("from", "to"), names, strict=True):
                if not value:
                    query.refuse(name, "Give the id of a version, live or head.")
        (before, pointers), (after, _) = find_both(request, agent_id, [str(name) for name in names])
        return reply(comparison_text(before, after, pointers))


class DiscardDraftView(JSONView):
    """Return the head to what is live."""

    def post(self, request: Request, agent_id: str) -> HttpResponse:
        body_object(request)
        with transaction.atomic():
            agent = hold(request, agent_id, Role.EDITOR)
            AgentVersion.objects.discard_draft_locked(agent)
            return agent_reply(agent, agent.active_version)


def find(request: Request, agent_id: str, name: str) -> tuple[Row, Pointers]:
    """One version of an agent that the caller may see."""
    return find_both(request, agent_id, [name])[0]


def find_both(request: Request, agent_id: str, names: list[str]) -> list[tuple[Row, Pointers]]:
    """Versions of one agent by their ids, `live` or `head`, in one query."""
    wanted = Q()
    for name in names:
        if name in WORDS:
            wanted |= Q(pk=F(WORDS[name]))
        elif version_id := version_id_of(name):
            wanted |= Q(pk=version_id)
    agents = visible(request).filter(pk=agent_id)
    found: dict[str, tuple[Row, Pointers]] = {}
    if wanted:
        mine = AgentVersion.objects.filter(wanted, agent__in=agents)
        for values in rows(mine.order_by(), "agent__active_version", "agent__head_version"):
            row, pointers = Row(*values[:-2]), Pointers(agent_id, *values[-2:])
            found[str(row.id)] = (row, pointers)
            found |= {word: found[str(row.id)] for word in WORDS if row.id == getattr(pointers, f"{word}_id")}
    for name in names:
        if name.lower() not in found:
            raise no_version(agent_id, name) if agents.exists() else missing(agent_id)
    return [found[name.lower()] for name in names]
