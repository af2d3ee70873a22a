"""The passages of a search, read from the result of a call: a foreign tool may answer with anything."""

import json

import pytest

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
