"""API views of the versions of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.pagination import page_json, with_warnings
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import OrderBy, QueryParams
from agentcms.api.responses import json_response, json_text_response
from agentcms.api.views import JSONView
from agentcms.ids import parse_uuid
from agents_app.api.idempotency import idempotent
from agents_app.api.lookups import (
    DRAFT_HINT,
    agent_not_found,
    gate_notes,
    get_version_or_live,
    lock_matching_agent,
    version_not_found,
)
from agents_app.api.responses import agent_response, reject_warnings
from agents_app.api.schemas import ChangeOptions, change_from_options, is_publishing, validate_schemas
from agents_app.api.strict_requests import check_names, checking_names, warning_payloads
from agents_app.editing.change_context import change
from versions_app.api import representation_cache
from versions_app.api.representation import Pointers, full_version_json
from versions_app.api.representation_cache import VersionKey
from versions_app.api.schemas import Description, parse_description, read_compared_versions
from versions_app.models import AgentVersion
from versions_app.models.version import get_live_version

VersionsByName = dict[str, tuple[VersionKey, Pointers]]

ORDER_COLUMNS = {"versionNumber": "version_number", "createdAt": "created_at"}
DEFAULT_ORDER = OrderBy("versionNumber")
NO_VERSION_ID = UUID(int=0)  # the compiled query always takes two IDs


class VersionsView(JSONView):
    """List the versions of an agent, or save a named version."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(20)
            order = query.order_by(tuple(ORDER_COLUMNS), DEFAULT_ORDER)
            unknown = query.check_unknown_names()
        pointers_and_total = representation_cache.find_pointers_and_total(request.user, agent_id)
        if pointers_and_total is None:
            raise agent_not_found(agent_id)
        pointers, total = pointers_and_total
        # Versions may have the same time, so their numbers decide.
        columns = dict.fromkeys((order.signed(ORDER_COLUMNS[order.field]), order.signed("version_number")))
        page = representation_cache.get_page(agent_id, tuple(columns), slice(paging.start, paging.stop))

        texts = representation_cache.get_many_json(page, pointers)
        text = page_json("versions", texts, total, paging.page, paging.per_page)
        return json_text_response(with_warnings(text, unknown))

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, Description) as names:
            (values,) = validate_schemas(body, Description)
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.EDITOR)
            with change(message=values.get("change_message") or "", name=values.get("name") or ""):
                version = AgentVersion.objects.snapshot_locked(agent, pinned=bool(values.get("pinned")))
            return json_text_response(with_warnings(full_version_json(version, agent), names.unknown), 201)


class VersionView(JSONView):
    """Read, describe or delete a version."""

    def get(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        (key,), pointers = get_version_keys(request, agent_id, version_id)
        texts = representation_cache.get_many_json([key], pointers)
        if not texts:  # deleted after the first query
            raise version_not_found(agent_id, version_id)
        return json_text_response(texts[0])

    def patch(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, Description) as names:
            values = parse_description(body)
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.EDITOR)
            version = get_version_or_live(agent, version_id)
            version.update_description_locked(agent, **values)
            return json_text_response(
                with_warnings(full_version_json(version, agent), [*names.unknown, *gate_notes(agent)])
            )

    def delete(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            version = get_version_or_live(agent, version_id)
            version.remove_locked(agent)
            return json_response({"success": True, "message": f"Version {version.version_number} was deleted"})


class ActivateView(JSONView):
    """Publish a version."""

    @idempotent
    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, ChangeOptions) as names:
            (options,) = validate_schemas(body, ChangeOptions)
        with transaction.atomic(), change_from_options(options):
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            version = get_version_or_live(agent, version_id)
            # Moved before the strict check, whose error rolls the move back.
            version.activate_locked(agent)
            if names.strict:
                reject_warnings(agent, version)
            message = f"Version {version.version_number} is now active"
            done = {"success": True, "message": message, "activeVersionId": version.pk}
            return json_response(done | warning_payloads([*names.unknown, *gate_notes(agent)]))


class RestoreView(JSONView):
    """Restore a version: create a copy of it as a new version."""

    @idempotent
    def post(self, request: Request, agent_id: str, version_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, ChangeOptions) as names:
            (options,) = validate_schemas(body, ChangeOptions)
        role, hint = (Role.PUBLISHER, DRAFT_HINT) if is_publishing(options) else (Role.EDITOR, "")
        with transaction.atomic(), change_from_options(options):
            agent = lock_matching_agent(request, agent_id, role, hint)
            version = get_version_or_live(agent, version_id).restore_locked(agent)
            if names.strict:
                reject_warnings(agent, version)
            notes = [*names.unknown, *gate_notes(agent)]
            return json_text_response(with_warnings(full_version_json(version, agent), notes))


class CompareVersionsView(JSONView):
    """Compare two versions of an agent."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            names = read_compared_versions(query)
        (before, after), pointers = get_version_keys(request, agent_id, *names, words=("live", "head"))
        text = representation_cache.find_comparison_json(before, after, pointers)
        if text is None:  # deleted after the first query
            raise version_not_found(agent_id, f"{names[0]} or {names[1]}")
        return json_text_response(text)


class DiscardDraftView(JSONView):
    """Discard the draft."""

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        names = check_names(request, json_object_body(request))
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.EDITOR)
            AgentVersion.objects.discard_draft_locked(agent)
            return agent_response(agent, get_live_version(agent), unknown=names.unknown)


def get_version_keys(
    request: Request, agent_id: str, *names: str, words: tuple[str, ...] = ()
) -> tuple[list[VersionKey], Pointers]:
    """Return up to two versions of an agent by ID or pointer name, in one query. Raise NotFound."""
    # A UUID may be written in upper case. The versions are found by its usual text.
    lower_names = [name.lower() for name in names]
    versions = find_version_keys(request, agent_id, lower_names, [word for word in words if word in lower_names])
    for name in names:
        if name.lower() not in versions:
            # Every agent has a live version, so an empty result means that the user may not see the agent.
            is_visible = find_version_keys(request, agent_id, lower_names, ["live"])
            raise version_not_found(agent_id, name) if is_visible else agent_not_found(agent_id)
    return [versions[name][0] for name in lower_names], versions[lower_names[0]][1]


def find_version_keys(request: Request, agent_id: str, names: Sequence[str], words: Sequence[str]) -> VersionsByName:
    """Return the existing versions by ID, and live and head by the given pointer names."""
    a, b = [parse_uuid(name) or NO_VERSION_ID for name in (*names, "")][:2]
    versions: VersionsByName = {}
    for key, pointers in representation_cache.get_version_pair(
        request.user, agent_id, a, b, with_pointers=bool(words)
    ):
        versions[str(key.id)] = (key, pointers)
        versions |= {word: versions[str(key.id)] for word in words if key.id == getattr(pointers, f"{word}_id")}
    return versions
