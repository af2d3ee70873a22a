"""API views that export the items of a dataset as a file, and import one as a job."""

from __future__ import annotations

import hashlib
from typing import Any

from django.core.files.base import File
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from access_app.role import Role
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.uploads import MAX_FILE_NAME_LENGTH, UploadView, declared_size, receive_body
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest, TooLarge, UnsupportedMediaType
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject
from agents_app.api.idempotency import KEY_HEADER, run_idempotently, takes_idempotency_key
from agents_app.api.required_role import note_required_role
from agents_app.api.strict_requests import warning_payloads
from evals_app.api.exchange.download import export_response
from evals_app.api.lookups import get_dataset, reject_later_version
from evals_app.exchange.formats import FileFormat, find_format
from evals_app.exchange.import_job import start_item_import
from evals_app.models import Dataset
from jobs_app.api.representation import job_payload
from jobs_app.files import temporary_file
from jobs_app.limits import require_free_job, require_quota
from versions_app.exchange.import_job import StoredUpload

UNKNOWN_FORMAT_MESSAGE = "Send CSV, a JSON array or JSON Lines. Name the format with Content-Type or with ?format=."


class FileNegotiation(DefaultContentNegotiation):
    """Content negotiation that accepts requests for any media type. Errors are JSON."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> object:
        # The only renderer is that of JSON, so DRF would answer 406 to a client that accepts CSV alone.
        return renderers[0], renderers[0].media_type


class DatasetExportView(JSONView):
    """The items of a dataset as a file."""

    content_negotiation_class = FileNegotiation

    def get(self, request: Request, dataset_id: str) -> HttpResponseBase:
        dataset = get_dataset(request, dataset_id)
        with QueryParams(request) as query:
            file_format = query.choice("format", FileFormat.values, FileFormat.JSONL)
            version = query.integer("version", dataset.version)
            query.check_unknown_names()
        reject_later_version(dataset, version)
        return export_response(dataset, version, FileFormat(file_format))


class DatasetImportView(UploadView):
    """The import of a file of items, as the body or in a form."""

    @takes_idempotency_key
    def post(self, request: Request, dataset_id: str) -> HttpResponse:
        dataset = get_dataset(request, dataset_id, Role.EDITOR)
        with QueryParams(request) as query:
            options: JSONObject = {name: query.text(name) or "" for name in ("format", "name")}
            options["columns"] = query.json_object("columns")
            unknown = query.check_unknown_names()
        if KEY_HEADER not in request.META:  # a repeat of a started import starts no other
            require_free_job(request.user)
            require_quota(request.user, declared_size(request))
        with temporary_file("items.import") as temporary:
            if request.content_type.startswith("multipart/form-data"):
                content, size, digest = receive_form(request, options)
            else:
                size, digest = receive_body(request, temporary)
                content = temporary
            check_options(request, options)
            with StoredUpload(content, size) as upload:
                return self.start(request, dataset, options, upload, f"{digest}\n{options}", warning_payloads(unknown))

    def start(
        self,
        request: Request,
        dataset: Dataset,
        options: JSONObject,
        upload: StoredUpload,
        content: str,
        warnings: JSONObject,
    ) -> HttpResponse:
        """Start the import, or return the response to the same `Idempotency-Key`."""

        def act() -> HttpResponse:
            note_required_role(Role.EDITOR, dataset.owner_id)
            job = start_item_import(request.user, dataset, options, upload)
            return json_response(job_payload(job) | warnings, 202)

        response = run_idempotently(request, f"{request.get_full_path()}\n{content}", act)
        upload.is_taken = "Idempotent-Replayed" not in response.headers  # the replayed job has its own file
        return response


def receive_form(request: Request, options: JSONObject) -> tuple[File[bytes], int, str]:
    """Return the file of a form, its size and its SHA-256. Fields of the form set the options."""
    # First: only reading the form shows whether a file is too large.
    files = [file for name in request.FILES for file in request.FILES.getlist(name)]
    # The upload handler sets it on the request of Django, which that of DRF wraps.
    if getattr(request._request, "was_too_large", False):
        raise TooLarge
    if len(files) != 1:
        raise BadRequest("request body", [("file", "Send one file.")])
    file: UploadedFile = files[0]
    options["name"] = options["name"] or file.name or ""
    options["format"] = options["format"] or request.POST.get("format", "")
    options["media_type"] = file.content_type or ""
    if text := request.POST.get("columns"):
        try:
            options["columns"] = parse_strict_json(text.encode())
        except InvalidJSON:
            raise BadRequest("request body", [("columns", "This must be a JSON object.")]) from None
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    return file, file.size or 0, digest.hexdigest()


def check_options(request: Request, options: JSONObject) -> None:
    """Set the format of the file, by its name or media type if it is not named. Raise ApiError."""
    issues = []
    if len(options["name"]) > MAX_FILE_NAME_LENGTH:
        issues.append(("name", f"Use at most {MAX_FILE_NAME_LENGTH} characters."))
    columns = options["columns"]
    if columns is not None and not (
        isinstance(columns, dict) and all(isinstance(target, str | None) for target in columns.values())
    ):
        issues.append(("columns", "This must be a JSON object: the name of each column with its field, or null."))
    if options["format"] and options["format"] not in FileFormat.values:
        issues.append(("format", f"Use one of {', '.join(FileFormat.values)}."))
    if issues:
        raise BadRequest("query parameters", issues)
    media_type = options.pop("media_type", request.content_type)
    file_format = options["format"] or find_format(options["name"], media_type)
    # The body is stored as it comes, so that the rows of a compressed one could not be read.
    if not file_format or request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise UnsupportedMediaType(UNKNOWN_FORMAT_MESSAGE)
    options["format"] = str(file_format)
