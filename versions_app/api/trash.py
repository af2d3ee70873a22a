"""API views of the trash: deleted agents, which can be restored."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import Conflict, NotFound
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import idempotent
from agents_app.api.required_role import note_required_role
from agents_app.api.responses import agent_response
from agents_app.api.schemas import validate_schemas
from agents_app.api.strict_requests import checking_names, warning_payloads
from agents_app.configuration.sub_agents import CircularReference
from versions_app import trash
from versions_app.api.schemas import RestoreOptions
from versions_app.models import DeletedAgent
from versions_app.models.deleted_agent import DeletedAgentQuerySet
from versions_app.models.version import get_live_version


class DeletedAgentsView(JSONView):
    """The deleted agents that the user may see, newest first."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            owner_id, agent_id = query.text("ownerId"), query.text("agentId")
            unknown = query.check_unknown_names()
        deleted = DeletedAgent.objects.for_user(request.user)
        if owner_id is not None:
            deleted = deleted.filter(owner_id=owner_id)
        if agent_id is not None:
            deleted = deleted.filter(agent_key=agent_id)
        page = [deleted_agent_payload(item) for item in deleted[paging.start : paging.stop]]
        payload = page_payload("deletedAgents", page, deleted.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))


class DeletedAgentView(JSONView):
    """A deleted agent: read it, or delete it for good."""

    def get(self, request: Request, deleted_id: str) -> HttpResponse:
        visible = DeletedAgent.objects.for_user(request.user)
        return json_response(deleted_agent_payload(get_deleted_agent(visible, deleted_id)))

    def delete(self, request: Request, deleted_id: str) -> HttpResponse:
        with transaction.atomic():
            deleted = lock_deleted_agent(request, deleted_id, Role.MANAGER)
            trash.purge_locked(deleted)
        return json_response({"success": True, "message": f"Agent {deleted.agent_key} was deleted for good"})


class RestoreDeletedAgentView(JSONView):
    """Restore a deleted agent."""

    @idempotent
    def post(self, request: Request, deleted_id: str) -> HttpResponse:
        body = json_object_body(request)
        with checking_names(request, body, RestoreOptions) as names:
            (options,) = validate_schemas(body, RestoreOptions)
        with transaction.atomic():
            deleted = lock_deleted_agent(request, deleted_id, Role.PUBLISHER)
            try:
                agent = trash.restore_locked(deleted, options.get("id") or "")
            except trash.AgentIDTaken as error:
                raise Conflict(f"{error} Send it as id.", "already_exists") from None
            except trash.RestoreRefused as error:
                raise Conflict(str(error), "not_restorable") from None
            except CircularReference as error:  # its path is in the agent, and not in this body
                raise Conflict(trash.circular_reference_message(error), "not_restorable") from None
            return agent_response(agent, get_live_version(agent), 201, names.unknown)


def lock_deleted_agent(request: Request, deleted_id: str, role: Role) -> DeletedAgent:
    """Lock a deleted agent, inside a transaction. Raise NotFound if the user may not see it, and RoleRequired."""
    visible = DeletedAgent.objects.for_user(request.user).with_role(request.user)
    deleted = get_deleted_agent(visible.select_for_update(of=("self",)), deleted_id)
    require_granted_role(request.user, role, deleted)
    note_required_role(role, deleted.owner_id)
    return deleted


def get_deleted_agent(visible: DeletedAgentQuerySet, deleted_id: str) -> DeletedAgent:
    uuid = parse_uuid(deleted_id)
    deleted = visible.filter(pk=uuid).first() if uuid else None
    if deleted is None:
        raise NotFound(f"Deleted agent with id {deleted_id} not found")
    return deleted


def deleted_agent_payload(deleted: DeletedAgent) -> JSONObject:
    return {
        "id": deleted.pk,
        "agentId": deleted.agent_key,
        "name": deleted.name,
        "ownerId": deleted.owner_id,
        "liveVersionNumber": deleted.live_version_number,
        "versionCount": deleted.version_count,
        "deletedAt": deleted.deleted_at,
        "deletedBy": deleted.deleted_by_name or None,
        "removedAt": deleted.removed_at,
    }
