"""API views that start exports and imports as jobs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from access_app.caller import Caller
from access_app.permissions import has_role_everywhere, max_role, owner_ids_for
from access_app.role import Role
from agentcms.api.parsers import TRUNCATED_BODY_MESSAGE, json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.views import JSONView
from agentcms.errors import ApiError, BadRequest, Forbidden, NotFound, TooLarge, UnsupportedMediaType
from agentcms.ids import random_key
from agents_app.api.idempotency import idempotent, run_idempotently
from agents_app.api.required_role import note_required_role
from jobs_app.api.lookups import get_job
from jobs_app.api.representation import job_response
from jobs_app.runner import enqueue
from versions_app.exchange.jobs import EXPORT, IMPORT, exchange_folder

JSON_LINES_TYPES = {"application/x-ndjson", "application/jsonl", "application/x-jsonlines"}
CHUNK_SIZE = 1 << 20


class ExportView(JSONView):
    """Start an export of all agents that the user may see."""

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        json_object_body(request)
        note_required_role(None)
        with transaction.atomic():
            return job_response(enqueue(EXPORT, {"role": max_role(request.user)}, requested_by=request.user), 202)


class ImportView(JSONView):
    """Start an import of a file of JSON Lines."""

    def post(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            options: dict[str, Any] = {name: query.boolean(name) for name in ("dryRun", "publish", "strict")}
            options["name"] = query.text("name") or ""
        reject_other_media_types(request)
        require_publisher_role(request.user)
        path, digest = store_body(request)
        leftover_files = [path]

        def start_import() -> HttpResponse:
            note_required_role(None)  # the role is checked above, for a replay too
            with transaction.atomic():
                job = enqueue(IMPORT, {**options, "role": max_role(request.user)}, requested_by=request.user)
                leftover_files.append(path.rename(exchange_folder() / f"{job.pk}.upload"))
                return job_response(job, 202)

        try:
            response = run_idempotently(request, f"{request.get_full_path()}\n{digest}", start_import)
            if "Idempotent-Replayed" not in response.headers:  # the replayed job has its own file
                leftover_files.clear()
            return response
        finally:
            for file in leftover_files:
                file.unlink(missing_ok=True)


def require_publisher_role(user: Caller) -> None:
    """Raise Forbidden unless the user may publish for at least one owner."""
    if not has_role_everywhere(user, Role.PUBLISHER) and not owner_ids_for(user, Role.PUBLISHER).exists():
        raise Forbidden("Importing needs the publisher role for an owner.")


def reject_other_media_types(request: Request) -> None:
    """Raise UnsupportedMediaType unless the body is uncompressed JSON Lines."""
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    media_type = request.content_type.partition(";")[0].strip().lower()
    if media_type not in JSON_LINES_TYPES or encoding not in ("", "identity"):
        raise UnsupportedMediaType("Send uncompressed application/x-ndjson, one JSON object per line.")


def store_body(request: Request) -> tuple[Path, str]:
    """Stream the body to disk. Return its path and its SHA-256."""
    declared = int(request.META.get("CONTENT_LENGTH") or 0)
    if declared > settings.IMPORT_MAX_BYTES:
        raise TooLarge
    path, digest, size = exchange_folder() / f"{random_key()}.part", hashlib.sha256(), 0
    source: Any = request._request
    try:
        with path.open("wb") as file:
            while chunk := source.read(CHUNK_SIZE):
                size += len(chunk)
                if size > settings.IMPORT_MAX_BYTES:
                    raise TooLarge
                digest.update(chunk)
                file.write(chunk)
        if not size:
            raise ApiError(400, "Send at least one record.", "invalid_body")
        if size < declared:
            raise BadRequest("request body", [("", TRUNCATED_BODY_MESSAGE)])
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path, digest.hexdigest()


class JobFileView(JSONView):
    """Download the file of an export."""

    def get(self, request: Request, job_id: str) -> HttpResponseBase:
        job = get_job(request, job_id)
        path = exchange_folder() / f"{job.pk}.jsonl"
        if job.kind != EXPORT or job.state != job.State.DONE or not path.exists():
            raise NotFound(f"Job {job_id} has no file")
        return FileResponse(path.open("rb"), content_type="application/x-ndjson", filename="agents.jsonl")
