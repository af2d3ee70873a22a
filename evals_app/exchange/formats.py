"""The formats of files with items: CSV, a JSON array and JSON Lines."""

from __future__ import annotations

from django.db import models

# The fields of an item in files, by wire name and in the order of columns.
ITEM_FIELDS = (
    "externalId",
    "input",
    "groundTruth",
    "expectedTrajectory",
    "toolMocks",
    "unmockedToolPolicy",
    "scorerIds",
    "requestContext",
    "metadata",
    "source",
)
TEXT_FIELDS = ("externalId", "unmockedToolPolicy")
ANY_FIELDS = ("input", "groundTruth")  # may have any JSON value
OBJECT_FIELDS = ("input", "groundTruth", "metadata", "requestContext")  # may be made of several columns
READ_ONLY_ITEM_FIELDS = frozenset({"id", "datasetId", "datasetVersion", "createdAt", "updatedAt"})


class FileFormat(models.TextChoices):
    """A format of a file with items."""

    CSV = "csv", "CSV"
    JSON = "json", "JSON"
    JSONL = "jsonl", "JSON Lines"

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self]


MEDIA_TYPES = {
    FileFormat.CSV: "text/csv",
    FileFormat.JSON: "application/json",
    FileFormat.JSONL: "application/x-ndjson",
}
_BY_MEDIA_TYPE = {
    **{media_type: file_format for file_format, media_type in MEDIA_TYPES.items()},
    "application/csv": FileFormat.CSV,
    "application/jsonl": FileFormat.JSONL,
    "application/x-jsonlines": FileFormat.JSONL,
}
_BY_SUFFIX = {
    "csv": FileFormat.CSV,
    "tsv": FileFormat.CSV,  # the first line shows the delimiter
    "json": FileFormat.JSON,
    "jsonl": FileFormat.JSONL,
    "ndjson": FileFormat.JSONL,
}


def find_format(name: str, media_type: str = "") -> FileFormat | None:
    """Return the format of a file by the end of its name, or else by its media type. None for any other."""
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    return _BY_SUFFIX.get(suffix) or _BY_MEDIA_TYPE.get(media_type.partition(";")[0].strip().lower())
