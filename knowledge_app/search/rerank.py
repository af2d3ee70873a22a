"""Functions that sort the results of searches again, registered by key in code.

    @reranker("newest-first")
    def newest_first(query: str, texts: Sequence[str]) -> Sequence[float]: ...

A function gets the question and the texts, and returns a score for each.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agentcms.db.connections import return_connection
from agents_app.registry.functions import function_registrar

if TYPE_CHECKING:
    from knowledge_app.search.retrieval import FoundChunk

log = logging.getLogger(__name__)

CANDIDATES = 40  # results that are sorted again

Reranker = Callable[[str, Sequence[str]], Sequence[float]]

_rerankers: dict[str, Reranker] = {}


def reranker(key: str) -> Callable[[Reranker], Reranker]:
    """Register a function that sorts the results of searches again."""
    return function_registrar(_rerankers, key, "reranker")


def registered_rerankers() -> Mapping[str, Reranker]:
    return _rerankers


def rerank_hits(key: str, query: str, hits: list[FoundChunk]) -> list[FoundChunk]:
    """Return the results by the scores of a reranker. If it is missing or fails, they stay as they are."""
    return_connection()  # the function may ask a model
    try:
        scores = [float(score) for score in _rerankers[key](query, [hit.text for hit in hits])]
        if len(scores) != len(hits) or not all(map(math.isfinite, scores)):
            raise ValueError("A reranker returns one finite number for each text.")
    except Exception:  # a registered function may raise anything
        log.exception("The reranker '%s' failed, so the order of the search is used.", key)
        return hits
    ranked = [replace(hit, score=round(score, 4)) for hit, score in zip(hits, scores, strict=True)]
    return sorted(ranked, key=lambda hit: -hit.score)
