"""Excerpts of long answers: what is shown of them around the words that differ."""

import pytest

from evals_app.compare.word_differences import EXCERPT_LENGTH, WordSpan, excerpt_around_marks

LONG = "word " * 200


@pytest.mark.parametrize(
    ("spans", "texts"),
    [
        ([WordSpan("short", False)], []),
        ([WordSpan(LONG, False)], [LONG[:EXCERPT_LENGTH] + "…"]),
        ([WordSpan("new", True), WordSpan(LONG, False)], ["new", f"{LONG[:60]} … ", " …"]),
        ([WordSpan(LONG, False), WordSpan("new", True)], [f" … {LONG[-60:]}", "new", " …"]),
        ([WordSpan(LONG, True)], [LONG[:EXCERPT_LENGTH] + "…"]),
    ],
)
def test_the_marks_are_in_the_excerpt(spans, texts):
    assert [span.text for span in excerpt_around_marks(spans)] == texts
