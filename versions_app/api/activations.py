"""API views of the live history."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import Conflict, NotFound
from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import end_of_millisecond, format_timestamp
from agents_app.api.idempotency import idempotent
from agents_app.api.lookups import agent_not_found, lock_matching_agent
from agents_app.api.responses import agent_response, reject_warnings
from agents_app.api.schemas import ChangeOptions, change_from_options, validate_schemas
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.models import Agent
from versions_app.api.representation import activation_payload
from versions_app.api.schemas import Undo
from versions_app.models import Activation, CannotUndo
from versions_app.models.activation import LIVE_MOVED_SINCE_MESSAGE


class ActivationsView(JSONView):
    """The live history, newest first. With `at`, the version that was live at a time."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(20)
            at = query.timestamp("at")
            unknown = query.check_unknown_names()
        if not Agent.objects.for_user(request.user).filter(pk=agent_id).exists():
            raise agent_not_found(agent_id)
        moves = Activation.objects.filter(agent_id=agent_id)
        if at is not None:
            return json_response(live_at(moves, agent_id, at) | warning_payloads(unknown))
        page = [activation_payload(move) for move in moves[paging.start : paging.stop]]
        payload = page_payload("activations", page, moves.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))


def live_at(moves: QuerySet[Activation], agent_id: str, at: datetime) -> JSONObject:
    """Return the version that was live at a time, even if it was deleted since. Raise NotFound."""
    # Times of the API have milliseconds, and those of the columns microseconds.
    move = moves.filter(created_at__lte=end_of_millisecond(at)).first()
    if move is None:
        raise NotFound(missing_move_message(moves, agent_id, at))
    return {
        "at": at,
        "versionId": move.to_version_id,
        "versionNumber": move.to_version_number,
        "kept": move.agent.versions.filter(pk=move.to_version_id).exists(),
        "activation": activation_payload(move),
    }


def missing_move_message(moves: QuerySet[Activation], agent_id: str, at: datetime) -> str:
    """Return why there is no entry at a time: the agent had no live version, or the clean-up has removed the entry."""
    oldest = moves.last()
    # The first entry of an agent replaces no version. If the oldest one does, earlier ones were removed.
    if oldest is None or oldest.from_version_id is None:
        return f"Agent {agent_id} had no live version at {format_timestamp(at)}"
    begin = format_timestamp(oldest.created_at)
    return f"The live history of agent {agent_id} begins at {begin}. Older entries were removed"


class UndoView(JSONView):
    """Roll back to the previous live version."""

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, Undo, ChangeOptions) as names:
            undo, options = validate_schemas(body, Undo, ChangeOptions)
        with transaction.atomic(), change_from_options(options):
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            newest = Activation.objects.filter(agent=agent).first()
            # A caller that names an entry has not seen what was published after it.
            if newest is None or undo.get("activation_id") not in (None, newest.pk):
                raise Conflict(LIVE_MOVED_SINCE_MESSAGE, "moved")
            try:
                version = newest.undo_locked(agent)
            except CannotUndo as error:
                raise Conflict(error.messages[0], error.code or "conflict") from None
            if names.strict:
                reject_warnings(agent, version)
            return agent_response(agent, version, unknown=names.unknown)
