"""The limits of the knowledge bases of a team, and of the vectors that callers send."""

from functools import partial

import pytest
from django.test import Client

from access_app.role import Role
from agentcms.errors import ApiError
from knowledge_app.models import Chunk, KnowledgeBase, KnowledgeIndex
from knowledge_app.sent_vectors import upsert_vectors
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import api_key, member
from tests.knowledge_app.conftest import make_base

pytestmark = pytest.mark.django_db

BASES = "/api/knowledge"
UPSERT = "/api/vector/handbook/upsert"


@pytest.fixture
def publisher():
    return member(Role.PUBLISHER, "support")


def body(key):
    return {"id": key, "name": key, "ownerId": "support", "embedder": "local/words"}


def vectors(*keys, text="a"):
    metadata = [{"text": text} for _ in keys]
    return {"indexName": "handbook", "vectors": [[1] * 64] * len(keys), "metadata": metadata, "ids": [*keys]}


def test_a_team_has_a_limited_number_of_bases(base, publisher, settings):
    settings.KNOWLEDGE_BASES_PER_TEAM = 1
    client = Client()
    client.force_login(publisher)

    refused = Caller(api_key(publisher)).post(BASES, body("second"))
    form = {
        "key": "second",
        "name": "Second",
        "owner_id": "support",
        "embedder": "local/words",
        "chunk_size": 1000,
        "chunk_overlap": 100,
    }
    page = client.post("/knowledge/+new", form)

    assert (refused.status_code, refused.body["code"]) == (429, "knowledge_quota_exceeded")
    assert "support has 1 knowledge bases" in refused.body["error"]
    assert "Delete one" in refused.body["error"]
    assert page.status_code == 429
    assert "has 1 knowledge bases" in str(page.context["form"].errors["owner_id"])
    assert KnowledgeBase.objects.count() == 1
    assert Caller(api_key(member(Role.PUBLISHER, "legal"))).post(BASES, body("x") | {"ownerId": "legal"}).body["id"]


def test_a_team_may_send_a_limited_number_of_vectors(base, publisher, settings):
    settings.KNOWLEDGE_VECTORS_PER_TEAM = 3
    other = make_base("other")
    upsert_vectors(other, other.live_index, [[1] * 64], [{"text": "a"}], ["x"])
    api = Caller(api_key(publisher))

    assert api.post(UPSERT, vectors("a", "b")).status_code == 200
    refused = api.post(UPSERT, vectors("a", "c"))

    assert (refused.status_code, refused.body["code"]) == (429, "vector_quota_exceeded")
    assert "support may have 3 vectors that were sent to the API in total" in refused.body["error"]
    assert {*Chunk.objects.values_list("key", flat=True)} == {"a", "b", "x"}
    assert api.post(UPSERT, vectors("a", "b", text="new")).status_code == 200
    assert {*Chunk.objects.filter(index=base.index).values_list("text", flat=True)} == {"new"}
    base = make_base("elsewhere", owner="sales")
    upsert_vectors(base, base.live_index, [[1] * 64], [{"text": "a"}], ["x"])


def test_vectors_that_a_rebuild_copies_count_once(base, publisher, settings):
    settings.KNOWLEDGE_VECTORS_PER_TEAM = 2
    api = Caller(api_key(publisher))
    assert api.post(UPSERT, vectors("a")).status_code == 200
    copied = Chunk.objects.get()
    building = KnowledgeIndex.objects.create(base=base, name="next", is_building=True, **base.settings_of_index)
    copied.pk, copied.index = None, building
    copied.save(force_insert=True)

    assert api.post(UPSERT, vectors("b")).status_code == 200


def test_the_metadata_of_a_vector_has_a_limited_size(base, publisher):
    refused = Caller(api_key(publisher)).post(UPSERT, vectors("a", text="x" * 16_001))

    assert (refused.status_code, refused.body["issues"][0]["field"]) == (400, "metadata[0]")
    assert not Chunk.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_vectors_that_are_sent_at_once_do_not_pass_the_limit(base, settings):
    settings.KNOWLEDGE_VECTORS_PER_TEAM = 3
    bases = [base, *(make_base(f"base-{number}") for number in range(7))]

    outcomes = run_concurrently(
        [partial(upsert_vectors, base, base.live_index, [[1] * 64], [{"text": "a"}], None) for base in bases]
    )

    assert sum(isinstance(outcome, ApiError) for outcome in outcomes) == 5, outcomes
    assert Chunk.objects.count() == 3
