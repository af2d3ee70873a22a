"""Search in conversations by meaning, and by words where the agent has no semantic recall."""

import json
from base64 import b64encode
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentcms.vectors import EmbedderFailed
from jobs_app import runner
from memory_app.recall.indexing import INDEX_MESSAGES
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread, recalling_agent
from tests.page_client import browser

pytestmark = pytest.mark.django_db

LOCAL = "local/multilingual"
COLOUR = "My favourite colour is teal."
TEXTS = [
    ("user", "When does the museum open?"),
    ("assistant", "At ten."),
    ("user", COLOUR),
    ("assistant", "Noted."),
    ("user", "Please book a table for two."),
]
QUESTION = quote("Which colour do I like best?")


@pytest.fixture
def recaller():
    return recalling_agent(topK=2)


@pytest.fixture
def thread(editor, recaller):
    thread = add_thread(editor, texts=TEXTS, agent=recaller, agent_key=recaller.pk, title="Trip")
    runner.run_now(INDEX_MESSAGES, {"thread": thread.pk, "embedder": LOCAL})
    return thread


def search(caller, question=QUESTION, **query):
    answer = caller.get(f"/api/memory/search?searchQuery={question}&" + "&".join(f"{k}={v}" for k, v in query.items()))
    assert answer.status_code == 200, answer.body
    return answer.body


@pytest.mark.parametrize("query", [{"threadId": "t"}, {"resourceId": "alice", "agentId": "recaller"}])
def test_the_most_similar_messages_come_first_with_scores(caller, thread, query):
    body = search(caller, **query, limit=3)

    assert (body["searchType"], body["count"]) == ("semantic", 3)
    assert body["searchScope"] == ("thread" if "threadId" in query else "resource")
    first = body["results"][0]
    scores = [result["score"] for result in body["results"]]
    assert (first["content"], first["threadId"], first["threadTitle"]) == (COLOUR, "t", "Trip")
    assert first["id"] == thread.messages.get(number=3).key
    assert scores == sorted(scores, reverse=True)
    assert 0.4 < scores[0] < 1
    assert [item["content"] for item in first["context"]["before"]] == ["At ten."]
    assert [item["content"] for item in first["context"]["after"]] == ["Noted."]


def test_an_answer_beside_a_result_is_one_message_with_its_texts(caller, thread):
    thread.messages.filter(number=4).update(text="")  # a call of a tool
    thread.messages.filter(number=5).update(head_number=4, role="assistant", text="Noted, teal.")

    first = search(caller, threadId="t", limit=1)["results"][0]

    (answer,) = first["context"]["after"]
    assert (answer["id"], answer["content"]) == (thread.messages.get(number=4).key, "Noted, teal.")


def test_the_options_of_the_call_count(caller, thread):
    config = quote(json.dumps({"semanticRecall": {"topK": 1, "messageRange": 0}}))

    (result,) = search(caller, threadId="t", memoryConfig=config)["results"]

    assert (result["content"], result["context"]) == (COLOUR, {"before": [], "after": []})
    config = quote(json.dumps({"semanticRecall": {"topK": 1, "messageRange": {"after": 1}}}))
    (result,) = search(caller, threadId="t", memoryConfig=config)["results"]
    assert [len(result["context"][name]) for name in ("before", "after")] == [0, 1]
    for option in ({"topK": 0}, {"messageRange": 99}, {"topK": "all"}, {"messageRange": {"before": -1}}):
        answer = caller.get(
            f"/api/memory/search?searchQuery=x&threadId=t&memoryConfig={quote(json.dumps({'semanticRecall': option}))}"
        )
        assert answer.status_code == 400, answer.body


@pytest.mark.parametrize("agent_id", ["recaller", "concierge"])
def test_many_hits_take_as_few_queries_as_one(caller, editor, thread, agent, agent_id):
    config = quote(json.dumps({"messageRange": 2}))
    thread.messages.update(text="The museum")

    def count(limit):
        with CaptureQueriesContext(connection) as queries:
            body = search(caller, "museum", resourceId="alice", agentId=agent_id, memoryConfig=config, limit=limit)
        assert body["count"] == limit
        return len(queries)

    count(1)  # fills the caches
    assert count(1) == count(5)


def test_an_agent_without_semantic_recall_is_searched_by_words(caller, editor, thread, agent):
    add_thread(editor, "plain", texts=TEXTS, agent=agent, agent_key=agent.pk)

    assert search(caller, "colour", threadId="plain")["searchType"] == "text"
    config = quote(json.dumps({"messageRange": {"before": 2}}))
    (result,) = search(caller, "colour", threadId="plain", memoryConfig=config)["results"]
    assert [len(result["context"][name]) for name in ("before", "after")] == [2, 0]
    assert search(caller, "colour", resourceId="alice")["searchType"] == "text"
    assert search(caller, "colour", resourceId="alice", agentId=agent.pk)["count"] == 2


def test_words_are_searched_in_the_own_threads_of_the_resource_only(caller, editor, agent):
    columns = {"agent": agent, "agent_key": agent.pk}
    plain = add_thread(editor, "plain", texts=TEXTS, **columns)
    add_thread(editor, "of-bob", "bob", texts=TEXTS, **columns)
    add_thread(editor, "of-sub-agent", texts=TEXTS, parent=plain, **columns)
    add_thread(editor, "of-experiment", texts=TEXTS, experiment_id=uuid4(), **columns)

    assert search(caller, "colour", resourceId="alice", agentId=agent.pk)["count"] == 1


def test_who_left_the_team_uses_no_embedder_of_its_agent(caller, editor, thread):
    editor.memberships.update(owner_id="sales")

    assert search(caller, "teal", threadId="t")["searchType"] == "text"
    assert browser(editor).get("/threads/t?recall=teal").context["recall_options"] is None


def test_an_embedder_that_fails_leaves_the_search_by_words(caller, thread, monkeypatch):
    def fail(embedder, text):
        raise EmbedderFailed("The provider answered with 500.")

    monkeypatch.setattr("memory_app.api.search.embed_question", fail)

    body = search(caller, "colour", threadId="t")

    assert (body["searchType"], body["results"][0]["content"]) == ("text", COLOUR)


def test_another_realm_or_resource_finds_nothing(caller, thread, recaller):
    stranger = Caller(api_key(member("publisher")))

    assert stranger.get(f"/api/memory/search?searchQuery={QUESTION}&threadId=t").status_code == 404
    assert search(stranger, resourceId="alice", agentId="recaller")["results"] == []
    assert search(caller, resourceId="bob", agentId="recaller")["results"] == []


def test_each_thread_and_resource_recalls_its_own_messages(caller, editor, thread, recaller):
    other = add_thread(editor, "of-bob", "bob", [("user", "The bus is late.")], agent=recaller, agent_key=recaller.pk)
    runner.run_now(INDEX_MESSAGES, {"thread": other.pk, "embedder": LOCAL})

    for query in ({"threadId": "of-bob"}, {"resourceId": "bob", "agentId": "recaller"}):
        assert [result["threadId"] for result in search(caller, **query)["results"]] == ["of-bob"], query


def test_the_page_of_a_thread_shows_what_it_would_recall(editor, thread):
    page = browser(editor).get(f"/threads/t?recall={QUESTION}").content.decode()

    assert "What would it recall?" in page
    (first, second) = page.split('<li class="section"')[0].count("Score"), page.count('class="chip chip-plain">Score')
    assert (first, second) == (0, 2)
    assert '<a href="/threads/t?message=3#message-3"' in page
    assert 'value="Which colour do I like best?"' in page


def test_the_page_recalls_no_conversations_that_the_reader_may_not_read(editor, thread, recaller):
    """A publisher of the agent reads its conversations, not those with other agents."""
    publisher = member("publisher")
    private = add_thread(editor, "private", texts=[("user", "My favourite colour is secret red.")])
    runner.run_now(INDEX_MESSAGES, {"thread": private.pk, "embedder": LOCAL})

    page = browser(publisher).get(f"/threads/t?realm=u{editor.pk}&recall={QUESTION}").content.decode()
    own = browser(editor).get(f"/threads/t?recall={QUESTION}").content.decode()

    assert "secret red" in own
    assert "secret red" not in page
    assert COLOUR in page.partition("What would it recall?")[2]


def test_a_thread_of_an_agent_without_recall_has_no_form(editor, agent):
    add_thread(editor, texts=TEXTS, agent=agent, agent_key=agent.pk)

    assert "What would it recall?" not in browser(editor).get("/threads/t").content.decode()


@pytest.mark.parametrize(
    ("field", "value", "claims"),
    [("roles", "editor", {}), ("tier", "pro", {"tier": "pro"})],
    ids=["a fact", "a claim"],
)
def test_a_search_has_the_memory_of_a_run_with_the_same_request_context(caller, editor, thread, field, value, claims):
    rules = {"operator": "AND", "conditions": [{"field": field, "operator": "contains", "value": value}]}
    recalling = {"options": {"lastMessages": 7, "semanticRecall": {"topK": 1}}}
    tiered = AgentFactory(
        id="tiered", conditional={"memory": [{"value": recalling, "rules": rules}]}, context_keys=["tier"]
    )
    thread.agent = tiered
    thread.save()
    context = f"&requestContext={b64encode(json.dumps(claims).encode()).decode()}"

    body = search(caller, threadId="t", requestContext=context.partition("=")[2])
    config = caller.get(f"/api/memory/config?agentId=tiered{context}").body["config"]
    page = browser(editor).get(f"/threads/t?recall={QUESTION}").context

    assert (body["searchType"], config and config["lastMessages"]) == ("semantic", 7)
    assert caller.get(f"/api/memory/status?agentId=tiered{context}").body["result"]
    assert bool(page["recall_options"]) is not bool(claims)  # a page has no claims
    assert search(Caller(api_key(member("viewer"))), resourceId="alice", agentId="tiered")["searchType"] == "text"
    assert caller.get(f"/api/memory/config?agentId=tiered&requestContext={'A' * 9000}").status_code == 400
