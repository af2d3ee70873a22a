"""The versions of an agent over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.pagination import page_json
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response, json_text_response
from agentcms.api.views import JSONView
from agentcms.ids import parse_uuid
from agents_app.api.idempotency import idempotent
from agents_app.api.lookups import agent_not_found, lock_matching_agent
from agents_app.api.responses import agent_response, is_strict, reject_warnings
from agents_app.api.schemas import ChangeOptions, change_from_options, is_publishing, validate_schemas
from agents_app.api.views import DRAFT_HINT, get_version, version_not_found
from agents_app.editing.change_context import change
from versions_app.api import representation_cache
from versions_app.api.representation import Pointers, full_version_json
from versions_app.api.schemas import Description, parse_description
from versions_app.models import AgentVersion

VersionsByName = dict[str, tuple[representation_cache.Key, Pointers]]

ORDER_COLUMNS = {"versionNumber": "version_number", "createdAt": "created_at"}
DEFAULT_ORDER = OrderBy("versionNumber")
NO_VERSION_ID = UUID(int=0)


class VersionsView(JSONView):
    """The history of an agent, and snapshots by hand."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(20)
            order = query.order_by(tuple(ORDER_COLUMNS), DEFAULT_ORDER)
        found = representation_cache.pointers_and_total(request.user, agent_id)
        if found is None:
            raise agent_not_found(agent_id)
        pointers, total = found
        sign = "-" if order.direction == "DESC" else ""
        columns = dict.fromkeys((f"{sign}{ORDER_COLUMNS[order.field]}", f"{sign}version_number"))
        page = representation_cache.page(agent_id, tuple(columns), (paging.per_page, paging.start))

        shown = representation_cache.get_many_json(page, pointers)

        return json_text_response(page_json("versions", shown, total, paging.page, paging.per_page))

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        (said,) = validate_schemas(json_object_body(request), Description)
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.EDITOR)
            with change(message=said.get("change_message") or "", name=said.get("name") or ""):
                version = AgentVersion.objects.snapshot_locked(agent, pinned=bool(said.get("pinned")))
            return json_text_response(full_version_json(version, agent), 201)


class VersionView(JSONView):
    """One version."""

    def get(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (key,), pointers = get_version_keys(request, agent_id, version_id)
        shown = representation_cache.get_many_json([key], pointers)
        if not shown:  # it went this very moment
            raise version_not_found(agent_id, version_id)
        return json_text_response(shown[0])

    def patch(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        said = parse_description(json_object_body(request))
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.EDITOR)
            version = get_version(agent, version_id)
            version.update_description_locked(**said)
            return json_text_response(full_version_json(version, agent))

    def delete(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            version = get_version(agent, version_id)
            version.remove_locked(agent)
            return json_response({"success": True, "message": f"Version {version.version_number} was deleted"})


class ActivateView(JSONView):
    """Make a version live."""

    @idempotent
    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (said,) = validate_schemas(json_object_body(request), ChangeOptions)
        strict = is_strict(request)
        with transaction.atomic(), change_from_options(said):
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            version = get_version(agent, version_id)
            version.activate_locked(agent)
            if strict:
                reject_warnings(agent, version)
            message = f"Version {version.version_number} is now active"
            return json_response({"success": True, "message": message, "activeVersionId": version.pk})


class RestoreView(JSONView):
    """An old picture as a new version."""

    @idempotent
    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (said,) = validate_schemas(json_object_body(request), ChangeOptions)
        strict = is_strict(request)
        role, hint = (Role.PUBLISHER, DRAFT_HINT) if is_publishing(said) else (Role.EDITOR, "")
        with transaction.atomic(), change_from_options(said):
            agent = lock_matching_agent(request, agent_id, role, hint)
            version = get_version(agent, version_id).restore_locked(agent)
            if strict:
                reject_warnings(agent, version)
            return json_text_response(full_version_json(version, agent))


class CompareView(JSONView):
    """What differs between two versions of one agent."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            names = [query.text(name) for name in ("from", "to")]
            for name, value in zip(("from", "to"), names, strict=True):
                if not value:
                    query.add_fault(name, "Give the id of a version, live or head.")
        (before, after), pointers = get_version_keys(request, agent_id, *map(str, names), words=("live", "head"))
        text = representation_cache.comparison(before, after, pointers)
        if text is None:  # one of them went this very moment
            raise version_not_found(agent_id, f"{names[0]} or {names[1]}")
        return json_text_response(text)


class DiscardDraftView(JSONView):
    """Return the head to what is live."""

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        json_object_body(request)
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.EDITOR)
            AgentVersion.objects.discard_draft_locked(agent)
            return agent_response(agent, agent.active_version)


def get_version_keys(
    request: Request, agent_id: str, *names: str, words: tuple[str, ...] = ()
) -> tuple[representation_cache.Keys, Pointers]:
    """Versions of one agent, two at most, by their ids or by the words allowed; one query."""
    asked = [name.lower() for name in names]
    found = find_version_keys(request, agent_id, asked, [word for word in words if word in asked])
    for name in names:
        if name.lower() not in found:
            # Live is always there, so whoever may see the agent finds something.
            seen = find_version_keys(request, agent_id, asked, ["live"])
            raise version_not_found(agent_id, name) if seen else agent_not_found(agent_id)
    return [found[name][0] for name in asked], found[asked[0]][1]


def find_version_keys(request: Request, agent_id: str, names: Sequence[str], words: Sequence[str]) -> VersionsByName:
    """The versions among these that are there, by id; live and head by these words, if any is asked for."""
    a, b = [parse_uuid(name) or NO_VERSION_ID for name in (*names, "")][:2]
    found: VersionsByName = {}
    for key, pointers in representation_cache.load_pair(request.user, agent_id, a, b, with_pointed=bool(words)):
        found[str(key.id)] = (key, pointers)
        found |= {word: found[str(key.id)] for word in words if key.id == getattr(pointers, f"{word}_id")}
    return found
