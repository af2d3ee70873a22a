"""Fixtures of tests of knowledge bases."""

import hashlib

import numpy as np
import pytest
from cachetools import TTLCache

from agentcms.cache import SizeLimitedCache
from agentcms.vectors import embedders
from jobs_app.models import Job
from jobs_app.runner import run_claimed
from knowledge_app.indexing.rebuild import create_live_index
from knowledge_app.models import KnowledgeBase
from knowledge_app.tool.cached_bases import base_table

DIMENSIONS = 64


class WordEmbedder:
    """An embedder that counts words: texts with the same words are similar. It remembers what it embedded."""

    def __init__(self, name="local/words", dimensions=DIMENSIONS):
        self.name, self.dimensions = name, dimensions
        self.texts = []
        self.failures = []  # errors that the next calls raise

    def load(self):
        pass

    def embed(self, texts, kind):
        if self.failures:
            raise self.failures.pop(0)
        if kind == "document":
            self.texts += texts
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[int(hashlib.sha256(word.strip(".,?!#").encode()).hexdigest(), 16) % self.dimensions] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@pytest.fixture(autouse=True)
def cleared_base_cache(monkeypatch):
    """Clear the table of bases, and let it not expire during a test."""
    monkeypatch.setattr(base_table, "_cache", SizeLimitedCache(TTLCache(1, 60)))


@pytest.fixture(autouse=True)
def embedder(monkeypatch):
    """Register a deterministic embedder."""
    words = WordEmbedder()
    monkeypatch.setitem(embedders._local, words.name, ("Words", words))
    return words


def make_base(key="handbook", owner="support", **fields):
    """Return a new base with its index."""
    fields = {"embedder": "local/words", "filterable": ["product", "year"], **fields}
    base = KnowledgeBase.objects.create(key=key, name=key.title(), owner_id=owner, **fields)
    create_live_index(base)
    return base


@pytest.fixture
def base(db):
    return make_base()


def run_jobs():
    """Run all jobs that wait, as a worker does."""
    while (job := Job.objects.filter(state=Job.State.QUEUED).order_by("created_at").first()) is not None:
        run_claimed(str(job.pk))
