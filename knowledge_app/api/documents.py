"""API views of the documents of a knowledge base."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpResponse
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.uploads import UploadView
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject
from agentcms.wire.names import join_paths
from agents_app.api.idempotency import idempotent_while
from agents_app.api.strict_requests import read_named_fields, warning_payloads
from knowledge_app.api.lookups import check_visible_base, get_base, get_document
from knowledge_app.api.representation import document_body
from knowledge_app.api.schemas import DocumentBody
from knowledge_app.documents.adding import add_content, add_text, add_url, delete_document
from knowledge_app.documents.errors import DocumentError
from knowledge_app.models import Document, KnowledgeBase

MAX_FILES_PER_REQUEST = 50
NO_STATUS = "all"
# In a response with a document, which a caller may send back as it was read.
READ_ONLY_DOCUMENT_KEYS = (
    *("id", "source", "mediaType", "hash", "size", "status", "error", "chunkCount", "createdAt", "indexedAt"),
    "warnings",
)


class DocumentsView(UploadView):
    """List of the documents of a base, and the addition of some."""

    def get(self, request: Request, base_id: str) -> HttpResponse:
        base = get_base(request, base_id)
        with QueryParams(request) as query:
            paging = query.paging(100)
            status = query.choice("status", (NO_STATUS, *Document.Status.values), NO_STATUS)
            unknown = query.check_unknown_names()
        rows = base.documents.without_content()
        if status != NO_STATUS:
            rows = rows.filter(status=status)
        page = [document_body(row) for row in rows[paging.start : paging.stop]]
        payload = page_payload("documents", page, rows.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))

    @idempotent_while(check_visible_base)
    def post(self, request: Request, base_id: str) -> HttpResponse:
        """Add a text, the document at a URL, or files. Several files answer with a list."""
        base = get_base(request, base_id, Role.EDITOR)
        if request.content_type.startswith("multipart/form-data"):
            bodies = add_files(request, base)
            return json_response(bodies[0] if len(bodies) == 1 else {"documents": bodies}, 201)
        body = json_object_body(request)
        fields, unknown = read_named_fields(request, body, DocumentBody, silent=READ_ONLY_DOCUMENT_KEYS)
        return json_response(document_body(add_from_fields(request, base, fields)) | warning_payloads(unknown), 201)


def add_from_fields(request: Request, base: KnowledgeBase, fields: JSONObject) -> Document:
    name, text, url = (fields.get(key) for key in ("name", "text", "url"))
    options: dict[str, Any] = {"metadata": fields.get("metadata"), "user": request.user}
    if url is not None and text is None:
        return add_url(base, url, name=name or "", **options)
    if text is None or name is None or url is not None:
        raise BadRequest("request body", [("text", "Send name and text, or url.")])
    return add_text(base, name, text, **options)


def add_files(request: Request, base: KnowledgeBase) -> list[JSONObject]:
    """Add the files of a form, all or none, and return their bodies. The field `metadata` is that of all, as JSON."""
    files = [file for name in request.FILES for file in request.FILES.getlist(name)]
    if not files or len(files) > MAX_FILES_PER_REQUEST:
        raise BadRequest("request body", [("file", f"Send 1 to {MAX_FILES_PER_REQUEST} files.")])
    try:
        text = request.POST.get("metadata")
        metadata = parse_strict_json(text.encode()) if text else None
    except InvalidJSON as error:
        faults = [(join_paths("metadata", field), message) for field, message in error.faults]
        raise BadRequest("request body", faults) from None
    options: dict[str, Any] = {"metadata": metadata, "user": request.user, "is_named": len(files) > 1}
    with transaction.atomic():  # one file after the other: all of them together may not fit into the memory
        return [document_body(add_part(base, file, **options)) for file in files]


def add_part(base: KnowledgeBase, file: UploadedFile[Any], *, is_named: bool, **options: Any) -> Document:
    """Add a file of a form. Raise DocumentError, with the name of the file if `is_named`."""
    # One byte above the limit is enough to see that a file is too large.
    content = file.read(settings.KNOWLEDGE_MAX_DOCUMENT_BYTES + 1)
    name = file.name or ""
    try:
        return add_content(base, name, content, media_type=file.content_type or "", **options)
    except DocumentError as error:
        if not is_named or f"'{name}'" in error.error:
            raise
        raise DocumentError(f"'{name}': {error.error}") from None


class DocumentView(JSONView):
    """A document: read with its text, and delete."""

    def get(self, request: Request, base_id: str, document_id: str) -> HttpResponse:
        document = get_document(get_base(request, base_id), document_id)
        return json_response({**document_body(document), "text": document.text})

    def delete(self, request: Request, base_id: str, document_id: str) -> HttpResponse:
        document = get_document(get_base(request, base_id, Role.EDITOR), document_id)
        delete_document(document)
        return json_response({"success": True, "message": f"Document {document.name} deleted"})
