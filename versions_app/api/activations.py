"""What was live when, over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import Conflict, NotFound
from agentcms.wire.timestamps import format_timestamp
from agents_app.api.idempotency import idempotent
from agents_app.api.lookups import agent_not_found, lock_matching_agent
from agents_app.api.responses import agent_response, is_strict, reject_warnings
from agents_app.api.schemas import ChangeOptions, change_from_options, validate_schemas
from agents_app.models import Agent
from versions_app.api.representation import activation_payload
from versions_app.api.schemas import Undo
from versions_app.models import Activation, CannotUndo
from versions_app.models.activation import LIVE_MOVED_SINCE_MESSAGE


class ActivationsView(JSONView):
    """Every move of live, newest first; with `at`, what was live at a time."""

    def get(self, request: Request, agent_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(20)
            moment = query.timestamp("at")
        if not Agent.objects.for_user(request.user).filter(pk=agent_id).exists():
            raise agent_not_found(agent_id)
        moves = Activation.objects.filter(agent_id=agent_id)
        if moment is not None:
            return json_response(live_at(moves, agent_id, moment))
        page = [activation_payload(move) for move in moves[paging.start : paging.stop]]
        return json_response(page_payload("activations", page, moves.count(), paging.page, paging.per_page))


def live_at(moves: Any, agent_id: str, moment: datetime) -> dict[str, Any]:
    """What was live at a time, by the moves of live: known also where the version was pruned since."""
    # A time on the wire is cut to milliseconds: one that came from here means all of its millisecond.
    end = moment.replace(microsecond=moment.microsecond // 1000 * 1000 + 999)
    move = moves.filter(created_at__lte=end).first()
    if move is None:
        raise NotFound(f"Nothing of agent {agent_id} was live at {format_timestamp(moment)}")
    return {
        "at": moment,
        "versionId": move.to_version_id,
        "versionNumber": move.to_version_number,
        "kept": move.agent.versions.filter(pk=move.to_version_id).exists(),
        "activation": activation_payload(move),
    }


class UndoView(JSONView):
    """Back to what was live before."""

    @idempotent
    def post(self, request: Request, agent_id: str) -> HttpResponse:
        undo, said = validate_schemas(json_object_body(request), Undo, ChangeOptions)
        strict = is_strict(request)
        with transaction.atomic(), change_from_options(said):
            agent = lock_matching_agent(request, agent_id, Role.PUBLISHER)
            newest: Any = agent.activations.first()
            if undo.get("activation_id") not in (None, newest.pk):
                raise Conflict(LIVE_MOVED_SINCE_MESSAGE, "moved")
            try:
                version = newest.undo_locked(agent)
            except CannotUndo as refusal:
                raise Conflict(refusal.messages[0], refusal.code or "conflict") from None
            if strict:
                reject_warnings(agent, version)
            return agent_response(agent, version)
