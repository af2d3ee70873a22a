"""The agents API."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.caller import Caller
from access_app.permissions import require_role
from access_app.role import Role
from agentcms.api.etags import is_not_modified
from agentcms.api.pagination import cursor_page_json, page_json, with_warnings
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response, json_text_response
from agentcms.api.views import JSONView
from agentcms.errors import Conflict
from agentcms.ids import parse_uuid
from agents_app.api import list_query, representation, representation_cache
from agents_app.api.idempotency import idempotent
from agents_app.api.list_query import STATE_COLUMNS
from agents_app.api.lookups import (
    agent_not_found,
    draft_hint,
    gate_notes,
    get_version_or_live,
    lock_matching_agent,
    owner_for_new_row,
    reject_dependents,
    version_not_found,
)
from agents_app.api.preconditions import ProposedEdit
from agents_app.api.representation import AgentRow
from agents_app.api.required_role import note_required_role
from agents_app.api.responses import agent_response, reject_warnings
from agents_app.api.schemas import (
    CREATE_MODELS,
    DUPLICATE_MODELS,
    PATCH_MODELS,
    change_from_options,
    first_version_notes,
    is_publishing,
    parse_create,
    parse_patch,
    validate_schemas,
)
from agents_app.api.strict_requests import READ_ONLY_KEYS, UNSUPPORTED_AGENT_KEYS, check_names, checking_names
from agents_app.configuration.sub_agents import dependents_payload
from agents_app.editing.archiving import archive_locked, unarchive_locked
from agents_app.editing.write_queue import agent_write_slot
from agents_app.models import Agent
from versions_app.models.version import get_head_version, get_live_version

AGENT_KEYS: dict[str, Any] = {"silent": READ_ONLY_KEYS, "unsupported": UNSUPPORTED_AGENT_KEYS}
# Filters of the published client that have no effect here. Only strict requests refuse them.
UNSUPPORTED_PARAMETERS = ("visibility", "favoritedOnly", "pinFavoritedFor")


class AgentsView(JSONView):
    """The collection of agents: list and create."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            params = list_query.parse_params(query)
            unknown = query.check_unknown_names(*UNSUPPORTED_PARAMETERS)
        paging = params.paging
        # A blank cursor begins a walk through all pages.
        if params.cursor is not None:
            keys, next_cursor = list_query.fetch_cursor_page(request.user, params)
            agents = representation_cache.get_many_json(request.user, keys, params.relation)
            page = cursor_page_json("agents", agents, paging.per_page, next_cursor)
            return json_text_response(with_warnings(page, unknown))

        keys, total = list_query.fetch_page(request.user, params)
        agents = representation_cache.get_many_json(request.user, keys, params.relation)
        page = page_json("agents", agents, total, paging.page, paging.per_page)
        return json_text_response(with_warnings(page, unknown))

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, *CREATE_MODELS, **AGENT_KEYS) as names:
            fields, agent_id, owner_id, options = parse_create(body)
        notes = first_version_notes(options)
        names.reject_if_strict(notes)
        owner_id = owner_for_new_row(request.user, owner_id)
        note_required_role(Role.EDITOR, owner_id)
        agent = Agent(id=agent_id, owner_id=owner_id, **fields)

        with transaction.atomic(), change_from_options(options):
            # Inserted before the strict check, whose error rolls it back.
            insert_agent(agent)
            if names.strict:
                reject_warnings(agent, get_live_version(agent))
            return agent_response(agent, get_live_version(agent), 201, [*names.unknown, *notes])


class AgentView(JSONView):
    """An agent: read, change and delete."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            status = query.choice("status", tuple(STATE_COLUMNS), "published")  # the client also sends `archived`
            version_id, number = query.text("versionId"), query.integer("versionNumber", 0, 1)
            unknown = query.check_unknown_names()
        if version_id or number:
            row = find_row_at_version(request.user, agent_id, version_id, number)
        else:
            row = representation.find_row(request.user, agent_id, STATE_COLUMNS[status][1])
        if row is None:
            raise agent_not_found(agent_id)
        warnings = representation.own_warnings_json(row)
        etag = representation.agent_etag(row, warnings)
        if is_not_modified(request, etag):
            return json_text_response("", 304, etag)
        return json_text_response(representation.agent_json(row, warnings, unknown), etag=etag)

    def patch(self, request: Request, agent_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, *PATCH_MODELS, **AGENT_KEYS, parameters=["force"]) as names:
            fields, owner_id, options = parse_patch(body)
        with QueryParams(request) as query:
            force = query.boolean("force")
        role, hint = (Role.PUBLISHER, draft_hint(fields, owner_id)) if is_publishing(options) else (Role.EDITOR, "")
        edit = ProposedEdit(fields, is_publishing(options))
        # The slot comes before the lock of the row, or writers could wait in a circle.
        with agent_write_slot(agent_id), transaction.atomic(), change_from_options(options) as context:
            agent = lock_matching_agent(request, agent_id, role, hint, edit)
            if owner_id is not None and owner_id != agent.owner_id:
                # Again, because an edit that saves a draft needs an editor only.
                require_role(request.user, Role.PUBLISHER, agent.owner_id)
                require_role(request.user, Role.PUBLISHER, owner_id)
                if not force:
                    reject_dependents(request, agent, "move", owner_id)
                agent.change_owner(owner_id)
            # An edit that changes nothing answers with the version from which it would have started.
            unchanged = get_live_version if context.publish else get_head_version
            # Edited before the strict check, whose error rolls it back.
            version = agent.edit_locked(fields) or unchanged(agent)
            if names.strict:
                reject_warnings(agent, version)
            return agent_response(agent, version, unknown=[*names.unknown, *gate_notes(agent)])

    def delete(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            force = query.boolean("force")
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            if not force:
                reject_dependents(request, agent, "delete")
            agent.delete()
            return json_response({"success": True, "message": f"Agent {agent_id} was deleted"})


class ArchiveView(JSONView):
    """Archive an agent."""

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        names = check_names(request, json_object_body(request), parameters=["force"])
        with QueryParams(request) as query:
            force = query.boolean("force")
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            if agent.archived_at is None and not force:
                reject_dependents(request, agent, "archive")
            archive_locked(agent)
            return agent_response(agent, get_live_version(agent), unknown=names.unknown)


class UnarchiveView(JSONView):
    """Unarchive an agent."""

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        names = check_names(request, json_object_body(request))
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            unarchive_locked(agent)
            return agent_response(agent, get_live_version(agent), unknown=names.unknown)


class DependentsView(JSONView):
    """The agents that name this one as a sub-agent."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        agent = Agent.objects.for_user(request.user).filter(pk=agent_id).first()
        if agent is None:
            raise agent_not_found(agent_id)
        return json_response(dependents_payload(request.user, agent))


class DuplicateView(JSONView):
    """The duplication of an agent."""

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, *DUPLICATE_MODELS) as names:
            identity, options, ownership = validate_schemas(body, *DUPLICATE_MODELS)
        with transaction.atomic():
            agent = lock_matching_agent(request, agent_id, Role.VIEWER)
            owner_id = ownership.get("owner_id")
            owner_id = agent.owner_id if owner_id is None else owner_id
            require_role(request.user, Role.EDITOR, owner_id, "Send another ownerId.")
            # In place of the role for the original, which the lock noted: a replay needs that for the copy.
            note_required_role(Role.EDITOR, owner_id)
            version = get_version_or_live(agent, options.get("version_id"))
            try:
                duplicate = agent.duplicate(identity["id"], owner_id, version, options.get("name"))
            except IntegrityError:
                raise id_taken_error(identity["id"]) from None
            if names.strict:
                reject_warnings(duplicate, get_live_version(duplicate))
            return agent_response(duplicate, get_live_version(duplicate), 201, names.unknown)


def find_row_at_version(user: Caller, agent_id: str, text: str | None, number: int) -> AgentRow | None:
    """Return the agent as of a version given by ID, number or both. Raise NotFound for an unknown version."""
    version_id = parse_uuid(text) if text else None
    lookup = {**({"pk": version_id} if text else {}), **({"version_number": number} if number else {})}
    row = None if text and version_id is None else representation.find_row_of_version(user, agent_id, **lookup)
    if row is None and Agent.objects.for_user(user).filter(pk=agent_id).exists():
        raise version_not_found(agent_id, text or str(number))
    return row


def insert_agent(agent: Agent) -> None:
    """Save a new agent. Raise Conflict if its ID is taken."""
    try:
        agent.insert()
    except IntegrityError:
        # Possible after the error, because `insert()` is a savepoint in the transaction of the request.
        if Agent.objects.filter(pk=agent.pk).exists():
            raise id_taken_error(agent.pk) from None
        raise


def id_taken_error(agent_id: str) -> Conflict:
    return Conflict(f"Agent with id {agent_id} already exists", "already_exists")
