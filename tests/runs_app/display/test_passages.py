"""The passages of a search, read from the result of a call: a foreign tool may answer with anything."""

import json
from uuid import uuid4

import pytest
from django.urls import reverse

from runs_app.display.passages import read_passages

ROW = {"document": "Install.md", "place": "Ports", "score": 0.5, "text": "The port is eighty."}


def test_passages_are_read():
    (row,) = read_passages(json.dumps({"knowledgeBase": "handbook", "results": [ROW]}))

    assert (row.base_key, row.document, row.place, row.score, row.text) == (
        "handbook",
        "Install.md",
        "Ports",
        0.5,
        "The port is eighty.",
    )


@pytest.mark.parametrize(
    "result",
    [
        '{"knowledgeBase": ' + "[" * 100_000,
        json.dumps({"knowledgeBase": "b", "results": [{**ROW, "text": "\ud800"}]}),
        json.dumps({"knowledgeBase": "b", "results": [{**ROW, "score": float("nan")}]}),
        json.dumps({"knowledgeBase": "b", "results": {}}),
        json.dumps({"knowledgeBase": "b", "results": [None]}),
    ],
    ids=["deep", "half a surrogate pair", "not a number", "no rows", "no row"],
)
def test_a_hostile_result_has_no_passages(result):
    assert read_passages(result) == []


@pytest.mark.parametrize("faulty", [{"documentId": "Install.md"}, {"documentId": "a/b"}, {}])
def test_a_row_without_the_id_of_a_document_has_no_link(faulty):
    (row,) = read_passages({"knowledgeBase": "handbook", "results": [{**ROW, **faulty}]})

    assert row.url == ""


def test_a_row_links_to_its_document():
    document = str(uuid4())

    (row,) = read_passages({"knowledgeBase": "handbook", "results": [{**ROW, "documentId": document}]})
    (other,) = read_passages({"knowledgeBase": "hand/book", "results": [{**ROW, "documentId": document}]})

    assert (row.url, other.url) == (reverse("knowledge:document", args=["handbook", document]), "")
