"""Validation of change messages."""

import pytest

from agents_app.editing.change_context import change


@pytest.mark.parametrize(("word", "most"), [("message", 500), ("name", 100)])
def test_too_long_texts_are_refused_on_both_databases(word, most):
    with change(**{word: "x" * most}):
        pass

    with pytest.raises(ValueError, match=f"at most {most}"), change(**{word: "x" * (most + 1)}):
        pass
