"""The passages that a search of a knowledge base found, for the page of a run."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentcms.wire.json_parser import parse
from agentcms.wire.json_types import JSONObject

is_boundary = re.compile(r"</?passage-[0-9a-f]+>").fullmatch


class PassageRow(NamedTuple):
    """A passage with its score and its place."""

    base_key: str
    document: str
    document_id: str
    place: str
    score: float
    text: str


def read_passages(result: str) -> list[PassageRow]:
    """Return the passages in the result of a call, or nothing if it is that of another tool."""
    if '"knowledgeBase"' not in result:
        return []
    try:
        value = parse(result.encode())
        base_key = str(value["knowledgeBase"])
        return [read_passage(base_key, row) for row in value["results"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def read_passage(base_key: str, row: JSONObject) -> PassageRow:
    lines = [line for line in str(row["text"]).splitlines() if not is_boundary(line)]
    texts = (str(row["document"]), str(row.get("documentId", "")), str(row["place"]))
    return PassageRow(base_key, *texts, float(row["score"]), "\n".join(lines))
