"""The response with the items of a dataset as a file."""

from __future__ import annotations

from django.http import FileResponse

from agentcms.web.downloads import file_response
from evals_app.exchange.formats import FileFormat
from evals_app.exchange.writing import export_items
from evals_app.models import Dataset


def export_response(dataset: Dataset, version: int, file_format: FileFormat) -> FileResponse:
    """Return a response with the items at a version of a dataset as a file."""
    name = f"{dataset.pk}-v{version}.{file_format}"
    parts = export_items(dataset, version, file_format)
    # Written to a file first: a client that reads slowly would hold a thread of the server.
    return file_response(parts, name, f"{file_format.media_type}; charset=utf-8")
