"""API views that start exports and imports as jobs, and read their files and reports."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from access_app.caller import Caller
from access_app.permissions import has_role_somewhere
from access_app.role import Role
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.uploads import MAX_FILE_NAME_LENGTH, declared_size, receive_body
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest, Forbidden, NotFound, UnsupportedMediaType
from agentcms.wire.json_types import JSONObject
from agentcms.wire.unknown_names import UnknownName
from agents_app.api.idempotency import KEY_HEADER, idempotent, run_idempotently, takes_idempotency_key
from agents_app.api.required_role import note_required_role
from agents_app.api.strict_requests import check_names, warning_payloads
from jobs_app.api.lookups import get_job
from jobs_app.api.representation import job_payload
from jobs_app.download_rights import require_owners_of_file
from jobs_app.files import temporary_file
from jobs_app.limits import require_free_job, require_quota
from jobs_app.models import JobFile
from runs_app.privacy.forgetting import EXPORT_RESOURCE
from runs_app.privacy.jobs import personal_data_caller
from versions_app.exchange.export_job import EXPORT, start_agent_export
from versions_app.exchange.file_format import file_format_fault
from versions_app.exchange.import_job import StoredUpload, start_import
from versions_app.exchange.records import ACTIONS
from versions_app.exchange.report import record_payload

# No media type is registered for JSON Lines. Tools send one of these.
JSON_LINES_TYPES = {"application/x-ndjson", "application/jsonl", "application/x-jsonlines"}
RECORDS_PER_RESPONSE = 100


class ExportView(JSONView):
    """Start an export of all agents that the user may see."""

    @idempotent
    def post(self, request: Request) -> HttpResponse:
        names = check_names(request, json_object_body(request))
        note_required_role(None)
        job = start_agent_export(request.user)
        # An export equal to an earlier one is answered with that one.
        return json_response(job_payload(job) | warning_payloads(names.unknown), 200 if job.is_finished else 202)


class ImportView(JSONView):
    """Start an import of a file of JSON Lines."""

    @takes_idempotency_key
    def post(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            options: JSONObject = {name: query.boolean(name) for name in ("dryRun", "publish", "strict")}
            options["name"] = query.text("name") or ""
            if len(options["name"]) > MAX_FILE_NAME_LENGTH:
                query.add_fault("name", f"Use at most {MAX_FILE_NAME_LENGTH} characters.")
            unknown = query.check_unknown_names()
        reject_other_media_types(request)
        require_publisher_role(request.user)
        if KEY_HEADER not in request.META:  # a repeat of a started import starts no other
            require_free_job(request.user)
            require_quota(request.user, declared_size(request))
        with temporary_file("import.jsonl") as file:
            size, digest = receive_body(request, file)
            # Refused as a whole: indented JSON would give one refused record for each line.
            if fault := file_format_fault(file):
                raise BadRequest("request body", [("", fault)])
            with StoredUpload(file, size) as upload:
                return self.start(request, options, upload, digest, unknown)

    def start(
        self,
        request: Request,
        options: JSONObject,
        upload: StoredUpload,
        digest: str,
        unknown: Sequence[UnknownName],
    ) -> HttpResponse:
        """Start the import, or return the response to the same `Idempotency-Key`."""

        def act() -> HttpResponse:
            note_required_role(None)  # the role is checked above, for a replay too
            job = start_import(request.user, options, upload)
            return json_response(job_payload(job) | warning_payloads(unknown), 202)

        response = run_idempotently(request, f"{request.get_full_path()}\n{digest}", act)
        upload.is_taken = "Idempotent-Replayed" not in response.headers  # the replayed job has its own file
        return response


def require_publisher_role(user: Caller) -> None:
    """Raise Forbidden unless the user may publish for at least one owner."""
    if not has_role_somewhere(user, Role.PUBLISHER):
        raise Forbidden("Importing needs the publisher role for an owner.")


def reject_other_media_types(request: Request) -> None:
    """Raise UnsupportedMediaType unless the body is uncompressed JSON Lines."""
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    media_type = request.content_type.partition(";")[0].strip().lower()
    if media_type not in JSON_LINES_TYPES or encoding not in ("", "identity"):
        raise UnsupportedMediaType("Send uncompressed application/x-ndjson, one JSON object per line.")


FILE_NAMES = {EXPORT: "agents.jsonl", EXPORT_RESOURCE: "resource.jsonl"}  # by kind of job


class JobFileView(JSONView):
    """Download the file of an export."""

    def get(self, request: Request, job_id: str) -> HttpResponseBase:
        job = get_job(request, job_id)
        if job.kind == EXPORT_RESOURCE:
            personal_data_caller(request.user)  # with the rights that starting it needs
        require_owners_of_file(request.user, job)
        has_file = job.kind in FILE_NAMES and job.state == job.State.DONE
        file = JobFile.objects.filter(job=job).first() if has_file else None
        try:
            content = file and file.open()
        except FileNotFoundError:  # the clean-up deleted it since the query
            content = None
        if content is None:
            raise NotFound(f"Job {job_id} has no file")
        name = FILE_NAMES[job.kind]
        return FileResponse(content, as_attachment=True, filename=name, content_type="application/x-ndjson")


class JobRecordsView(JSONView):
    """The report of an import: a page of the outcomes of its records."""

    def get(self, request: Request, job_id: str) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(RECORDS_PER_RESPONSE)
            action = query.choice("action", ("all", *ACTIONS), "all")
            unknown = query.check_unknown_names()
        rows = get_job(request, job_id).report_rows.order_by("number")
        if action != "all":
            rows = rows.filter(action=action)
        records = [record_payload(row) for row in rows[paging.start : paging.stop]]
        payload = page_payload("records", records, rows.count(), paging.page, paging.per_page)
        return json_response(payload | warning_payloads(unknown))
