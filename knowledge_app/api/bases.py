"""API views of knowledge bases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models import Count
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.permissions import SHARED_OWNER, has_role_everywhere, has_role_somewhere, owner_ids_for, require_role
from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.db.locks import reserve_new_key
from agentcms.errors import BadRequest
from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import parse_filter_of_body
from agents_app.api.idempotency import idempotent, idempotent_while
from agents_app.api.required_role import note_required_role
from agents_app.api.responses import deletion_message
from agents_app.api.strict_requests import read_named_fields, warning_payloads
from agents_app.configuration.row_issues import reject_issues
from agents_app.configuration.schema import Issue
from jobs_app.api.representation import job_response
from knowledge_app.api.lookups import check_visible_base, get_base
from knowledge_app.api.representation import base_body, hit_body
from knowledge_app.api.schemas import BASE_CHANGE, KnowledgeBaseBody, SearchBody, apply_base, base_issues
from knowledge_app.indexing.jobs import enqueue_reindexing
from knowledge_app.indexing.rebuild import create_live_index
from knowledge_app.models import Chunk, Document, KnowledgeBase
from knowledge_app.quotas import require_base_quota
from knowledge_app.search.retrieval import DEFAULT_TOP_K, search_base
from knowledge_app.used_by import find_searching_agents

# In a response with a base, which a caller may send back as it was read.
READ_ONLY_BASE_KEYS = ("documentCount", "chunkCount", "isRebuilding", "createdAt", "updatedAt", "warnings")


class BasesView(JSONView):
    """List of the bases that the user may see, and the creation of one."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(100)
            owner_id = query.text("ownerId")
            unknown = query.check_unknown_names()
        rows = KnowledgeBase.objects.for_user(request.user).select_related("index")
        if owner_id is not None:
            rows = rows.filter(owner_id=owner_id)
        page = base_bodies([*rows[paging.start : paging.stop]])
        payload = page_payload("knowledge", page, rows.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        body = json_object_body(request)
        fields, unknown = read_named_fields(
            request, body, KnowledgeBaseBody, silent=READ_ONLY_BASE_KEYS, check=partial(new_base_issues, request)
        )
        base = KnowledgeBase(owner_id=owner_of_new(request, fields.pop("owner_id", None)))
        require_role(request.user, Role.PUBLISHER, base.owner_id)
        note_required_role(Role.PUBLISHER, base.owner_id)
        with transaction.atomic():
            reserve_new_key(KnowledgeBase, fields["id"])
            require_base_quota(base.owner_id)
            reject_issues(apply_base(base, fields))
            base.save()
            create_live_index(base)
        return json_response(base_bodies([base])[0] | warning_payloads(unknown), 201)


def new_base_issues(request: Request, fields: JSONObject) -> list[Issue]:
    """Return what is wrong with a new base that has these fields, for those who may create one."""
    return apply_base(KnowledgeBase(), fields) if has_role_somewhere(request.user, Role.PUBLISHER) else []


def owner_of_new(request: Request, owner_id: str | None) -> str:
    """Return the owner of a new base: the given one, or the caller's only one. Raise BadRequest for several."""
    if owner_id is not None:
        return owner_id
    if has_role_everywhere(request.user, Role.PUBLISHER):
        return SHARED_OWNER
    owners = [*owner_ids_for(request.user, Role.PUBLISHER)[:2]]
    if len(owners) > 1:
        raise BadRequest("request body", [("ownerId", "You are a publisher of several teams. Name one.")])
    # Without any, the check of the role names the role that is missing.
    return owners[0] if owners else SHARED_OWNER


def base_bodies(bases: Sequence[KnowledgeBase]) -> list[JSONObject]:
    """Return bases with the numbers of their documents and chunks: two queries for all of them."""
    documents = dict(Document.objects.filter(base__in=bases).order_by().values_list("base").annotate(Count("pk")))
    live = Chunk.objects.filter(index__in=[base.index_id for base in bases], is_pending=False)
    chunks = dict(live.order_by().values_list("index").annotate(Count("pk")))
    return [base_body(base, documents.get(base.pk, 0), chunks.get(base.index_id, 0)) for base in bases]


class BaseView(JSONView):
    """A knowledge base: read, change and delete."""

    def get(self, request: Request, base_id: str) -> HttpResponse:
        return json_response(base_bodies([get_base(request, base_id)])[0])

    def patch(self, request: Request, base_id: str) -> HttpResponse:
        base = get_base(request, base_id, Role.PUBLISHER)
        body = json_object_body(request)
        check = partial(base_issues, base)
        fields, unknown = read_named_fields(request, body, BASE_CHANGE, silent=READ_ONLY_BASE_KEYS, check=check)
        with transaction.atomic():
            # Read again: `save()` writes all columns, and a job may have replaced the index meanwhile.
            base = KnowledgeBase.objects.get_locked(base.pk)
            reject_issues(base_issues(base, fields))
            base.save()
            if base.is_outdated:
                enqueue_reindexing(base, request.user)
        return json_response(base_bodies([base])[0] | warning_payloads(unknown))

    def delete(self, request: Request, base_id: str) -> HttpResponse:
        base = get_base(request, base_id, Role.PUBLISHER)
        message = deletion_message(request.user, f"Knowledge base {base_id}", find_searching_agents(base))
        base.delete()
        return json_response({"success": True, "message": message})


class SearchKnowledgeView(JSONView):
    """A search of a base."""

    def post(self, request: Request, base_id: str) -> HttpResponse:
        base = get_base(request, base_id)
        fields, unknown = read_named_fields(request, json_object_body(request), SearchBody)
        condition = parse_filter_of_body(fields.get("filter"), base.filterable)
        top_k, min_score = fields.get("top_k") or DEFAULT_TOP_K, fields.get("min_score")
        hits = search_base(base, fields["query"], top_k=top_k, condition=condition, min_score=min_score)
        return json_response({"results": [hit_body(hit) for hit in hits]} | warning_payloads(unknown))


class ReindexView(JSONView):
    """A job that indexes all documents of a base again."""

    @idempotent_while(check_visible_base)
    def post(self, request: Request, base_id: str) -> HttpResponse:
        job = enqueue_reindexing(get_base(request, base_id, Role.EDITOR), request.user)
        return job_response(job, 202)
