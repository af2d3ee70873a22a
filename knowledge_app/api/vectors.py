"""API views of vectors, as the published client uses them: each knowledge base is a vector store."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.parsers import json_object_body
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest
from agentcms.vectors import find_embedder, local_embedders
from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import parse_filter_of_body
from agents_app.api.idempotency import idempotent_while
from agents_app.api.strict_requests import read_named_fields, warning_payloads
from knowledge_app.api.lookups import get_base, get_index
from knowledge_app.api.schemas import CreateIndexBody, UpsertBody, VectorQueryBody
from knowledge_app.models import KnowledgeBase
from knowledge_app.sent_vectors import (
    create_index,
    delete_index,
    index_details,
    query_index,
    query_vector,
    upsert_vectors,
)


class VectorsView(JSONView):
    """The bases that the user may see, as vector stores."""

    def get(self, request: Request) -> HttpResponse:
        rows = KnowledgeBase.objects.for_user(request.user)
        stores = [
            {"id": row.key, "name": row.key, "type": "knowledge", "description": row.description or row.name}
            for row in rows
        ]
        return json_response({"vectors": stores})


class EmbeddersView(JSONView):
    """The embedders that run on the server."""

    def get(self, request: Request) -> HttpResponse:
        return json_response({"embedders": [embedder_body(*entry) for entry in local_embedders().items()]})


def embedder_body(name: str, title: str) -> JSONObject:
    """Return an embedder with the dimension that an index of its vectors needs."""
    dimensions = find_embedder(name).dimensions
    return {"id": name, "provider": "local", "name": title, "description": title, "dimensions": dimensions}


class IndexesView(JSONView):
    """The names of the indexes of a base. The one with its documents has the ID of the base."""

    def get(self, request: Request, vector_id: str) -> HttpResponse:
        base = get_base(request, vector_id)
        return json_response([*base.indexes.filter(is_building=False).values_list("name", flat=True)])


class IndexView(JSONView):
    """An index of a base: its dimension, and its deletion."""

    def get(self, request: Request, vector_id: str, index_id: str) -> HttpResponse:
        index = get_index(get_base(request, vector_id), index_id)
        return json_response(index_details(index))

    def delete(self, request: Request, vector_id: str, index_id: str) -> HttpResponse:
        base = get_base(request, vector_id, Role.PUBLISHER)
        delete_index(base, get_index(base, index_id))
        return json_response({"success": True})


def find_vectors(request: Request, vector_id: str) -> None:
    """Raise NotFound if the caller may not see the knowledge base."""
    get_base(request, vector_id)


class CreateIndexView(JSONView):
    """Creation of an index for vectors that the caller computes."""

    @idempotent_while(find_vectors)
    def post(self, request: Request, vector_id: str) -> HttpResponse:
        base = get_base(request, vector_id, Role.PUBLISHER)
        fields, unknown = read_named_fields(request, json_object_body(request), CreateIndexBody)
        # Not in the schema, which has all metrics of the protocol: the message says which one is supported.
        if fields.get("metric") not in (None, "cosine"):
            raise BadRequest("request body", [("metric", "Only cosine is supported.")])
        create_index(base, fields["index_name"], fields["dimension"])
        return json_response({"success": True} | warning_payloads(unknown))


class UpsertView(JSONView):
    """Vectors that the caller computed."""

    @idempotent_while(find_vectors)
    def post(self, request: Request, vector_id: str) -> HttpResponse:
        base = get_base(request, vector_id, Role.PUBLISHER)
        fields, unknown = read_named_fields(request, json_object_body(request), UpsertBody)
        index = get_index(base, fields["index_name"])
        ids = upsert_vectors(base, index, fields["vectors"], fields.get("metadata"), fields.get("ids"))
        return json_response({"ids": ids} | warning_payloads(unknown))


class QueryView(JSONView):
    """A search by a vector. It answers with a list."""

    def post(self, request: Request, vector_id: str) -> HttpResponse:
        base = get_base(request, vector_id)
        fields, _ = read_named_fields(request, json_object_body(request), VectorQueryBody)  # a list has no warnings
        index = get_index(base, fields["index_name"])
        condition = parse_filter_of_body(fields.get("filter"), base.filterable)
        vector = query_vector(index, fields["query_vector"])
        count, includes_vector = fields.get("top_k") or 10, bool(fields.get("include_vector"))
        hits = query_index(
            base,
            index,
            vector,
            condition,
            count,
            min_score=fields.get("min_score"),
            includes_vector=includes_vector,
        )
        return json_response(hits)
