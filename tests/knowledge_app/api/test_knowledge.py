"""The API of knowledge bases: create, add documents, search, and who may."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from access_app.role import Role
from agents_app.editing.change_context import change
from jobs_app.models import Job
from knowledge_app import sent_vectors
from knowledge_app.documents.adding import add_text
from knowledge_app.indexing.jobs import REINDEX_BASE
from knowledge_app.indexing.rebuild import begin_rebuild, finish_rebuild
from knowledge_app.models import Chunk, Document, KnowledgeBase, KnowledgeIndex
from knowledge_app.search import vector_search
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.knowledge_app.conftest import make_base, run_jobs

pytestmark = pytest.mark.django_db

BASES = "/api/knowledge"
BASE = f"{BASES}/handbook"
DOCUMENTS = f"{BASE}/documents"
UNKNOWN = "0190b3c4-0000-7000-8000-000000000000"


def caller(role, owner="support"):
    return Caller(api_key(member(role, owner)))


@pytest.fixture
def publisher():
    return caller(Role.PUBLISHER)


@pytest.fixture
def filled(base):
    add_text(
        base, "Router", "# Ports\n\nThe router has the port eighty.", metadata={"product": "router", "year": 2024}
    )
    add_text(base, "Switch", "# Ports\n\nThe switch has nine ports.", metadata={"product": "switch", "year": 2025})
    run_jobs()
    return base


def body(**fields):
    return {"id": "handbook", "name": "Handbook", "ownerId": "support", "embedder": "local/words", **fields}


def test_a_base_is_created_changed_and_deleted(publisher):
    created = publisher.post(BASES, body(filterable=["product"], chunkSize=500, chunkOverlap=50))
    assert created.status_code == 201, created.content
    assert created.body["chunkSize"] == 500
    assert created.body["isRebuilding"] is False
    assert publisher.post(BASES, body()).status_code == 409

    changed = publisher.patch(BASE, {"name": "Book", "chunkSize": 600})
    assert (changed.body["name"], changed.body["isRebuilding"]) == ("Book", True)
    run_jobs()
    assert publisher.get(BASE).body["isRebuilding"] is False
    assert publisher.get(BASES).body["total"] == 1
    assert publisher.delete(BASE).body == {"success": True, "message": "Knowledge base handbook deleted"}
    assert publisher.get(BASE).status_code == 404


def test_the_agents_that_searched_a_deleted_base_are_named(publisher, filled):
    published = AgentFactory(id="clerk", owner_id="support", knowledge={"handbook": {}})
    with change(publish=False):
        published.edit({"knowledge": {}})
    AgentFactory(id="seller", owner_id="sales", knowledge={"handbook": {}})  # its team has no such base

    answer = publisher.delete(BASE)

    assert answer.body["message"].endswith("deleted. These agents run without it from now on: 'clerk'")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "Not valid"}, "id"),
        ({"name": " "}, "name"),
        ({"name": "\u200b"}, "name"),
        ({"embedder": "local/unknown"}, "embedder"),
        ({"chunkSize": 5}, "chunkSize"),
        ({"chunkOverlap": 900}, "chunkOverlap"),
        ({"filterable": ["a b"]}, "filterable"),
        ({"filterable": "a"}, "filterable"),
        ({"rerank": "unknown"}, "rerank"),
    ],
)
def test_an_invalid_base_is_refused_by_field(publisher, change, field):
    answer = publisher.post(BASES, body(**change))

    assert answer.status_code == 400, answer.content
    assert answer.body["issues"][0]["field"].startswith(field)
    assert not KnowledgeBase.objects.exists()


def test_owner_and_id_cannot_be_changed_and_all_issues_are_reported(publisher, base):
    answer = publisher.patch(BASE, {"id": "other", "ownerId": "sales", "chunkSize": "7", "rerank": "unknown"})
    new = publisher.post(BASES, body(id="new", name=" ", rerank="unknown"))

    assert {issue["field"] for issue in answer.body["issues"]} == {"id", "ownerId", "chunkSize", "rerank"}
    assert {issue["field"] for issue in new.body["issues"]} == {"name", "rerank"}


def test_null_is_the_owner_of_a_shared_base():
    shared = caller(Role.PUBLISHER, "")
    shared.post(BASES, body(ownerId=""))

    assert shared.patch(BASE, {"name": "Manual", "ownerId": None}).status_code == 200


def test_documents_are_added_as_text_and_files(base):
    editor = caller(Role.EDITOR)
    text = editor.post(DOCUMENTS, {"name": "Notes", "text": "# A\n\nThe port is eighty.", "metadata": {"year": 1}})
    assert (text.status_code, text.body["status"]) == (201, "queued")
    files = {"file": [SimpleUploadedFile("a.md", b"# B\n\nText."), SimpleUploadedFile("b.html", b"<p>More text</p>")]}
    key = api_key(member(Role.EDITOR, "support"))
    sent = Client(headers={"Authorization": f"Bearer {key}"}).post(DOCUMENTS, {**files, "metadata": '{"year": 2}'})
    assert sent.status_code == 201, sent.content
    assert [row["mediaType"] for row in json.loads(sent.content)["documents"]] == ["text/markdown", "text/html"]
    run_jobs()

    listed = editor.get(DOCUMENTS).body
    assert [row["status"] for row in listed["documents"]] == ["ready"] * 3
    document = editor.get(f"{DOCUMENTS}/{text.body['id']}").body
    assert document["text"].startswith("# A")
    assert editor.delete(f"{DOCUMENTS}/{text.body['id']}").body["success"]
    assert not Chunk.objects.filter(text__contains="eighty").exists()


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"name": "a"},
        {"text": "a"},
        {"name": "a", "text": " "},
        {"name": "", "text": "a"},
        {"name": "a", "text": "a", "metadata": []},
        {"name": "a", "text": "a", "metadata": {"a": "x" * 5000}},
        {"name": "a", "text": "a", "url": "https://example.org"},
        {"url": "ftp://example.org"},
        {"url": "http://127.0.0.1/"},
        {"url": "http://2130706433/"},
        {"url": "http://[::ffff:169.254.169.254]/"},
    ],
)
def test_an_invalid_document_is_refused(base, sent):
    answer = caller(Role.EDITOR).post(DOCUMENTS, sent)

    assert answer.status_code in (400, 422), answer.content
    assert answer.body["error"]
    assert not Document.objects.exists()


def test_documents_are_listed_by_their_state(filled):
    viewer = caller(Role.VIEWER)

    ready, failed, odd = (viewer.get(f"{DOCUMENTS}?status={status}") for status in ("ready", "failed", "odd"))

    assert (ready.body["total"], failed.body["total"]) == (2, 0)
    assert (odd.status_code, odd.body["issues"][0]["field"]) == (400, "status")


def test_a_search_returns_passages_with_scores_and_places(filled):
    viewer = caller(Role.VIEWER)
    answer = viewer.post(f"{BASE}/search", {"query": "Which port has the router?", "topK": 1})

    (hit,) = answer.body["results"]
    assert (hit["document"], hit["place"], hit["metadata"]["year"]) == ("Router", "Ports", 2024)
    assert "eighty" in hit["text"]
    assert 0 < hit["score"] <= 1
    filtered = viewer.post(f"{BASE}/search", {"query": "router port", "filter": {"year": {"$gt": 2024}}})
    assert [hit["document"] for hit in filtered.body["results"]] == ["Switch"]
    for more, count in ((0, 1), (0.0001, 0), (-0.0001, 1)):
        limited = {"query": "Which port has the router?", "minScore": hit["score"] + more}
        assert len(viewer.post(f"{BASE}/search", limited).body["results"]) == count


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": 1}, "query"),
        ({"query": "a", "topK": 21}, "topK"),
        ({"query": "a", "filter": {"color": 1}}, "filter.color"),
        ({"query": "a", "minScore": 1.5}, "minScore"),
        ({"query": "a", "minScore": -1.5}, "minScore"),
        ({"query": "a", "minScore": "0.5"}, "minScore"),
    ],
)
def test_an_invalid_search_is_refused(filled, sent, field):
    answer = caller(Role.VIEWER).post(f"{BASE}/search", sent)

    assert answer.status_code == 400
    assert [issue["field"] for issue in answer.body["issues"]] == [field]


ROUTES = [
    ("GET", BASE, None),
    ("PATCH", BASE, {"name": "x"}),
    ("DELETE", BASE, None),
    ("POST", f"{BASE}/search", {"query": "a"}),
    ("POST", f"{BASE}/reindex", {}),
    ("GET", DOCUMENTS, None),
    ("POST", DOCUMENTS, {"name": "a", "text": "b"}),
    ("GET", f"{DOCUMENTS}/{UNKNOWN}", None),
    ("DELETE", f"{DOCUMENTS}/{UNKNOWN}", None),
    ("GET", "/api/vector/handbook/indexes", None),
    ("GET", "/api/vector/handbook/indexes/handbook", None),
    ("DELETE", "/api/vector/handbook/indexes/handbook", None),
    ("POST", "/api/vector/handbook/create-index", {"indexName": "a", "dimension": 2}),
    ("POST", "/api/vector/handbook/upsert", {"indexName": "handbook", "vectors": [[1]]}),
    ("POST", "/api/vector/handbook/query", {"indexName": "handbook", "queryVector": [1]}),
]


@pytest.mark.parametrize(("method", "path", "sent"), ROUTES)
def test_a_base_of_another_team_does_not_exist(filled, method, path, sent):
    stranger = caller(Role.MANAGER, "sales")
    answer = stranger.call(method, path, sent)
    missing = stranger.call(method, path.replace("handbook", "missing"), sent)

    assert answer.status_code == missing.status_code == 404
    assert answer.body["error"] == missing.body["error"].replace("missing", "handbook")
    assert stranger.get(BASES).body["total"] == 0
    assert stranger.get("/api/vectors").body == {"vectors": []}


@pytest.mark.parametrize(
    ("role", "method", "path", "sent"),
    [
        (Role.VIEWER, "POST", DOCUMENTS, {"name": "a", "text": "b"}),
        (Role.VIEWER, "POST", f"{BASE}/reindex", {}),
        (Role.EDITOR, "PATCH", BASE, {"name": "x"}),
        (Role.EDITOR, "DELETE", BASE, None),
        (Role.EDITOR, "POST", BASES, body(id="new")),
        (Role.EDITOR, "POST", "/api/vector/handbook/create-index", {"indexName": "a", "dimension": 2}),
        (Role.EDITOR, "POST", "/api/vector/handbook/upsert", {"indexName": "handbook", "vectors": [[1]]}),
    ],
)
def test_a_missing_role_is_named(filled, role, method, path, sent):
    answer = caller(role).call(method, path, sent)

    assert answer.status_code == 403
    assert "role in support" in answer.body["error"]


def test_a_search_compares_every_chunk_of_every_batch(base, monkeypatch):
    monkeypatch.setattr(vector_search, "ROWS_PER_BATCH", 2)
    for number in range(7):
        add_text(base, f"Document {number}", f"The router has port {number}.")
    run_jobs()

    answer = caller(Role.VIEWER).post(f"{BASE}/search", {"query": "router port", "topK": 20})

    assert len(answer.body["results"]) == 7


def test_a_second_owner_finds_nothing(filled):
    make_base("other", owner="sales")

    answer = caller(Role.VIEWER, "sales").post(f"{BASES}/other/search", {"query": "router port eighty", "topK": 20})

    assert answer.body == {"results": []}


def test_embedders_name_the_dimension_that_an_index_needs(publisher):
    listed = {row["id"]: row for row in publisher.get("/api/embedders").body["embedders"]}

    title = "Multilingual (16 languages)"
    assert listed["local/multilingual"] == {
        "id": "local/multilingual",
        "provider": "local",
        "name": title,
        "description": title,
        "dimensions": 512,
    }


def test_vectors_are_sent_and_found(filled, publisher):
    store = "/api/vector/handbook"
    assert publisher.get(f"{store}/indexes").body == ["handbook"]
    assert publisher.get(f"{store}/indexes/handbook").body == {"dimension": 64, "count": 2, "metric": "cosine"}
    assert publisher.post(f"{store}/create-index", {"indexName": "own", "dimension": 2}).body == {"success": True}
    assert publisher.post(f"{store}/create-index", {"indexName": "own", "dimension": 3}).status_code == 409
    sent = {"indexName": "own", "vectors": [[1, 0], [0, 2]], "ids": ["a", "b"], "metadata": [{"year": 1}, {"year": 2}]}
    assert publisher.post(f"{store}/upsert", sent).body == {"ids": ["a", "b"]}
    publisher.post(f"{store}/upsert", {"indexName": "own", "vectors": [[1, 1]], "ids": ["a"]})

    query = {"indexName": "own", "queryVector": [0, 1], "topK": 5, "includeVector": True}
    best, second = publisher.post(f"{store}/query", query).body
    assert (best["id"], best["metadata"]["year"], best["score"]) == ("b", 2, 1.0)
    assert best["vector"] == pytest.approx([0, 1], abs=0.01)
    assert (second["id"], second["score"]) == ("a", pytest.approx(0.707, abs=0.01))
    filtered = publisher.post(f"{store}/query", {**query, "filter": {"year": 2}}).body
    assert [row["id"] for row in filtered] == ["b"]
    near = publisher.post(f"{store}/query", {**query, "minScore": 0.9}).body
    opposite = {"indexName": "own", "queryVector": [0, -1]}
    assert [row["id"] for row in near] == ["b"]
    assert [row["id"] for row in publisher.post(f"{store}/query", {**opposite, "minScore": -0.9}).body] == ["a"]
    assert publisher.delete(f"{store}/indexes/handbook").status_code == 409
    assert publisher.delete(f"{store}/indexes/own").body == {"success": True}
    assert publisher.get(f"{store}/indexes").body == ["handbook"]


def test_an_answer_has_no_more_numbers_of_vectors_than_it_can_carry(publisher, monkeypatch, filled):
    monkeypatch.setattr(sent_vectors, "MAX_ANSWERED_NUMBERS", 640)
    query = {"indexName": "handbook", "queryVector": [1.0 / 3] * 64, "includeVector": True}

    refused = publisher.post("/api/vector/handbook/query", {**query, "topK": 11})

    assert (refused.status_code, refused.body["issues"]) == (
        400,
        [
            {
                "field": "topK",
                "message": "With includeVector, at most 10 vectors of 64 numbers fit into an answer. "
                "Lower topK, or leave out includeVector.",
            }
        ],
    )
    hits = publisher.post("/api/vector/handbook/query", query).body
    assert max(len(str(number)) for hit in hits for number in hit["vector"]) <= len("-0.123456")
    assert (
        publisher.post("/api/vector/handbook/query", {**query, "includeVector": False, "topK": 11}).status_code == 200
    )


@pytest.mark.parametrize(
    "sent",
    [
        {"vectors": [[1]]},
        {"vectors": [[0] * 64]},
        {"vectors": [[1] * 64]},
        {"vectors": [[1] * 64], "metadata": []},
        {"vectors": [[1] * 64, [1]], "metadata": [{"text": "a"}] * 2},
        {"vectors": [[1] * 64] * 2, "ids": ["a", "a"], "metadata": [{"text": "a"}] * 2},
        {"vectors": []},
        {"vectors": [["a"]]},
    ],
)
def test_invalid_vectors_are_refused(filled, publisher, sent):
    answer = publisher.post("/api/vector/handbook/upsert", {"indexName": "handbook", **sent})

    assert answer.status_code == 400, answer.content
    assert Chunk.objects.count() == 2


@pytest.mark.parametrize(
    ("vectors", "issue"),
    [
        ([["a"] * 64], {"field": "vectors[0][0]", "message": "This must be a number."}),
        ([[1] * 5000], {"field": "vectors[0]", "message": "List at most 4,096 items."}),
        ([], {"field": "vectors", "message": "List at least 1 item."}),
    ],
    ids=["a text", "too long", "none"],
)
def test_an_invalid_vector_is_named_once(filled, publisher, vectors, issue):
    answer = publisher.post("/api/vector/handbook/upsert", {"indexName": "handbook", "vectors": vectors})

    assert answer.body["issues"][0] == issue
    assert len({issue["field"] for issue in answer.body["issues"]}) == len(answer.body["issues"])


def vectors_with_texts(count, dimension=64):
    vectors = [[1] * dimension] * count
    return {"indexName": "handbook", "vectors": vectors, "metadata": [{"text": f"Text {n}"} for n in range(count)]}


def test_many_vectors_take_few_queries(filled, publisher, django_assert_max_num_queries):
    with django_assert_max_num_queries(40):
        assert publisher.post("/api/vector/handbook/upsert", vectors_with_texts(200)).status_code == 200


def test_vectors_of_an_empty_base_have_the_dimension_of_its_embedder(base, publisher):
    """Vectors of another one could never be found: documents and questions have that of the embedder."""
    refused = publisher.post("/api/vector/handbook/upsert", vectors_with_texts(1, dimension=3))

    assert (refused.status_code, refused.body["issues"][0]["field"]) == (400, "vectors[0]")
    assert publisher.get("/api/vector/handbook/indexes/handbook").body["dimension"] == 64
    assert publisher.post("/api/vector/handbook/upsert", vectors_with_texts(1)).status_code == 200


def test_vectors_for_an_index_that_is_rebuilt_meanwhile_are_to_be_sent_again(filled, publisher, monkeypatch):
    def replace_it(numbers, path, normalize=sent_vectors.normalize_vector):
        if not KnowledgeIndex.objects.filter(is_building=True).exists():
            finish_rebuild(filled, begin_rebuild(filled), 0)
        return normalize(numbers, path)

    Document.objects.all().delete()
    monkeypatch.setattr(sent_vectors, "normalize_vector", replace_it)

    refused = publisher.post("/api/vector/handbook/upsert", vectors_with_texts(1))

    assert (refused.status_code, "Send the vectors again" in refused.body["error"]) == (409, True)


def test_the_list_of_bases_takes_few_queries(filled, django_assert_max_num_queries):
    make_base("other")
    viewer = caller(Role.VIEWER)
    viewer.get(BASES)
    with django_assert_max_num_queries(6):
        assert viewer.get(BASES).body["total"] == 2


@pytest.mark.parametrize(
    ("text", "message", "field"),
    [
        ("[" * 100_000, "64 levels", None),
        ('{"a":' * 3000 + "1" + "}" * 3000, "64 levels", None),
        ('{"year": 1, "year": 2}', "repeat", "metadata.year"),
        ('{"year": 1e999}', "finite", "metadata.year"),
        ("[NaN]", "NaN", "metadata[0]"),
        ("{", "line 1", "metadata"),
    ],
    ids=["list", "object", "duplicate", "infinite", "entry", "unfinished"],
)
def test_hostile_metadata_of_a_form_is_refused(base, text, message, field):
    key = api_key(member(Role.EDITOR, "support"))
    client = Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)

    answer = client.post(DOCUMENTS, {"file": SimpleUploadedFile("a.md", b"Text."), "metadata": text})

    assert answer.status_code == 400, answer.content
    (issue, *_) = answer.json()["issues"]
    assert issue["field"].startswith("metadata")
    assert field in (None, issue["field"])
    assert message in issue["message"]
    assert not Document.objects.exists()


def test_of_several_files_the_one_that_cannot_be_read_is_named(base):
    client = Client(headers={"Authorization": f"Bearer {api_key(member(Role.EDITOR, 'support'))}"})
    files = [SimpleUploadedFile("a.md", b"Text."), SimpleUploadedFile("b.md", b" ")]

    answer = client.post(DOCUMENTS, {"file": files})

    assert (answer.status_code, answer.json()["error"]) == (422, "'b.md': The document has no text.")
    assert not Document.objects.exists()


def test_a_base_is_indexed_once_however_often_it_is_asked_for(base):
    users = [member(Role.EDITOR, "support") for _ in range(2)]

    jobs = [Caller(api_key(user)).post(f"{BASE}/reindex").body["id"] for user in users for _ in range(3)]

    assert len({*jobs}) == Job.objects.filter(kind=REINDEX_BASE).count() == 2
    assert jobs == [*jobs[:1] * 3, *jobs[3:4] * 3]
    run_jobs()
    assert Caller(api_key(users[0])).post(f"{BASE}/reindex").body["id"] not in jobs


@pytest.mark.parametrize(
    ("path", "sent", "name"),
    [
        (BASES, body(id="second", chunksize=500), "chunksize"),
        (DOCUMENTS, {"name": "Router", "text": "It has nine ports.", "metdata": {}}, "metdata"),
        (f"{BASE}/search", {"query": "ports", "topk": 3}, "topk"),
        ("/api/vector/handbook/create-index", {"indexName": "own", "dimension": 3, "metrics": "cosine"}, "metrics"),
        (
            "/api/vector/handbook/upsert",
            {"indexName": "handbook", "vectors": [[1] * 64], "metadata": [{"text": "a"}], "id": ["a"]},
            "id",
        ),
    ],
)
def test_unknown_names_are_warnings_and_errors_of_a_strict_request(base, publisher, path, sent, name):
    refused = publisher.post(f"{path}?strict=true", sent)
    accepted = publisher.post(path, sent)

    assert (refused.status_code, refused.body["issues"][0]["field"]) == (400, name)
    assert accepted.status_code in (200, 201)
    assert [warning["field"] for warning in accepted.body["warnings"]] == [name]


def test_what_was_read_may_be_sent_back(base, publisher):
    changed = publisher.patch(BASE, publisher.get(BASE).body | {"name": "Book", "chunksize": 5})
    added = publisher.post(DOCUMENTS, {"name": "Router", "text": "It has nine ports."})
    again = publisher.post(f"{DOCUMENTS}?strict=true", {**added.body, "text": "It has ten.", "url": None})

    assert [warning["field"] for warning in changed.body["warnings"]] == ["chunksize"]
    assert again.status_code == 201, again.body


def test_a_repeated_upload_of_files_adds_them_once(base):
    client = Client(headers={"Authorization": f"Bearer {api_key(member(Role.EDITOR, 'support'))}"})

    def upload(text, **fields):
        files = [SimpleUploadedFile("a.md", text), SimpleUploadedFile("b.md", b"Other text.")]
        return client.post(DOCUMENTS, {"file": files, **fields}, headers={"Idempotency-Key": "k"})

    first = upload(b"Text.")
    Document.objects.filter(name="a.md").delete()
    again = upload(b"Text.")

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert Document.objects.count() == 1
    assert [upload(b"Text!").status_code, upload(b"Text.", metadata="{}").status_code] == [422, 422]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (DOCUMENTS, {"name": "Router", "text": "It has nine ports."}),
        ("/api/knowledge/handbook/reindex", None),
        ("/api/vector/handbook/create-index", {"indexName": "mine", "dimension": 3}),
    ],
)
def test_a_repeat_has_the_first_response_although_what_it_made_is_gone(base, publisher, path, sent):
    first = publisher.post(path, sent, Idempotency_Key="k")
    Document.objects.all().delete()
    base.indexes.filter(name="mine").delete()
    Job.objects.update(state=Job.State.DONE)
    jobs = Job.objects.count()

    again = publisher.post(path, sent, Idempotency_Key="k")

    assert (again.status_code, again.body) == (first.status_code, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (Document.objects.count(), base.indexes.count(), Job.objects.count()) == (0, 1, jobs)


def test_a_repeated_request_stores_once(base, publisher):
    vectors = {"indexName": "handbook", "vectors": [[1] * 64], "metadata": [{"text": "a"}]}

    sent = [publisher.post("/api/vector/handbook/upsert", vectors, Idempotency_Key="v") for _ in range(2)]
    created = [publisher.post(BASES, body(id="second"), Idempotency_Key="b") for _ in range(2)]

    assert sent[0].body["ids"] == sent[1].body["ids"]
    assert [answer.status_code for answer in created] == [201, 201]
    assert (Chunk.objects.count(), KnowledgeBase.objects.count()) == (1, 2)
