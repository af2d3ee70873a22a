"""Fixtures of tests of judges."""

import pytest
from cachetools import TTLCache
from pydantic_ai.models.function import FunctionModel

from agentcms.cache import SizeLimitedCache
from agents_app.registry import Entry, Kind, registry
from runs_app.providers import cached_providers
from tests.evals_app.scorers.judge_model import Judge


@pytest.fixture
def providers(db, monkeypatch):
    """Return a function that reads the providers, which then stay in the cache for the other threads."""
    monkeypatch.setattr(cached_providers.provider_table, "_cache", SizeLimitedCache(TTLCache(1, 60)))
    return cached_providers.get_table


@pytest.fixture
def judge(providers):
    judge = Judge()
    entry = Entry(Kind.MODEL_PROVIDER, "judge", "Judge", target=lambda name, choice: FunctionModel(judge.respond))
    registry.add(entry)
    providers()
    return judge
