"""The passages that a search of a knowledge base found, for the page of a run."""

from __future__ import annotations

import re
from typing import NamedTuple

from django.urls import NoReverseMatch, reverse

from agentcms.wire.json_parser import parse_strict_json
from agentcms.wire.json_types import JSONObject, JSONValue

is_boundary = re.compile(r"</?passage-[0-9a-f]+>").fullmatch


class PassageRow(NamedTuple):
    """A passage with its score and its place."""

    base_key: str
    document: str
    url: str  # of the page of the document; blank without one
    place: str
    score: float
    text: str


def read_passages(result: JSONValue) -> list[PassageRow]:
    """Return the passages in the result of a call, or nothing if it is that of another tool."""
    if isinstance(result, str) and '"knowledgeBase"' not in result:
        return []
    try:
        value = parse_strict_json(result.encode()) if isinstance(result, str) else result
        base_key = str(value["knowledgeBase"])
        return [read_passage(base_key, row) for row in value["results"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def read_passage(base_key: str, row: JSONObject) -> PassageRow:
    lines = [line for line in str(row["text"]).splitlines() if not is_boundary(line)]
    url = document_url(base_key, str(row.get("documentId", "")))
    return PassageRow(base_key, str(row["document"]), url, str(row["place"]), float(row["score"]), "\n".join(lines))


def document_url(base_key: str, document_id: str) -> str:
    """Return the URL of the page of a document, or a blank text for IDs that no document can have."""
    try:
        return reverse("knowledge:document", args=[base_key, document_id])
    except NoReverseMatch:
        return ""
