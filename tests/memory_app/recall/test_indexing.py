"""Indexing of messages by jobs."""

from uuid import uuid4

import pytest
from django.db import connection

from agentcms.db.connections import return_connection
from agentcms.vectors import EmbedderFailed, find_embedder
from agents_app.editing.change_context import change
from jobs_app import runner
from jobs_app.models import Job
from memory_app.cleanup import replaced_vectors
from memory_app.history.messages import Author, NewMessage, append_messages
from memory_app.history.signal_markup import Signal
from memory_app.history.thread_signals import append_signal
from memory_app.history.threads import get_or_create_resource, transfer_thread
from memory_app.models import Message, Vector
from memory_app.realms import memory_caller
from memory_app.recall import indexing
from memory_app.recall.search import recall_messages, vectors_of_thread
from tests.factories import AgentFactory
from tests.memory_app.conftest import add_thread, recalling_agent

pytestmark = pytest.mark.django_db

LOCAL = "local/multilingual"


class CountingEmbedder:
    """The default embedder under another name, which counts its texts and may fail."""

    dimensions = 512

    def __init__(self, name="local/counting", fails_after=None):
        self.name, self.fails_after, self.batches = name, fails_after, []

    def load(self):
        pass

    def embed(self, texts, kind):
        if self.fails_after is not None and len(self.batches) >= self.fails_after:
            raise EmbedderFailed("The provider did not answer.")
        self.batches.append(len(texts))
        return find_embedder(LOCAL).embed(texts, kind)


@pytest.fixture
def thread(editor):
    return add_thread(editor, texts=[("user", "My favourite colour is teal."), ("assistant", "Noted."), ("user", "")])


def index(thread, embedder=LOCAL):
    return runner.run_now(indexing.INDEX_MESSAGES, {"thread": thread.pk, "embedder": embedder})


def add_messages(thread, texts):
    data = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]} for text in texts]
    append_messages(thread, [NewMessage(item) for item in data])


def test_texts_of_both_sides_get_vectors(thread):
    job = index(thread)

    assert job.result == {"indexed": 2}
    rows = [(row.message.text, row.part, row.thread, row.resource) for row in Vector.objects.order_by("message")]
    assert rows == [
        ("My favourite colour is teal.", 0, thread, thread.resource),
        ("Noted.", 0, thread, thread.resource),
    ]
    assert {len(row.data) for row in Vector.objects.all()} == {512}


def test_a_second_job_embeds_only_what_is_new(thread, monkeypatch):
    index(thread)
    embedder = CountingEmbedder(LOCAL)
    monkeypatch.setattr(indexing, "find_embedder", lambda name: embedder)
    add_messages(thread, ["One more"])

    assert [index(thread).result, index(thread).result] == [{"indexed": 1}, {"indexed": 0}]
    assert embedder.batches == [1]


def test_a_job_that_was_interrupted_continues_with_what_is_missing(thread):
    add_messages(thread, [f"Message {number}" for number in range(120)])
    failing, working = CountingEmbedder(fails_after=1), CountingEmbedder()

    with pytest.raises(indexing.Unavailable, match="did not answer"):
        indexing.index_thread(thread.pk, failing, lambda done: None)
    newest = Message.objects.filter(vectors__isnull=False).values_list("number", flat=True)
    assert (failing.batches, min(newest)) == ([50], 124 - 50)

    assert indexing.index_thread(thread.pk, working, lambda done: None) == 72
    assert working.batches == [50, 22]


def test_a_long_text_has_four_vectors(thread):
    add_messages(thread, ["word " * 5000])

    index(thread)

    assert sorted(Vector.objects.filter(message__number=4).values_list("part", flat=True)) == [0, 1, 2, 3]


def test_a_step_embeds_at_most_fifty_texts(thread):
    add_messages(thread, ["word " * 5000] * 20)
    embedder = CountingEmbedder()

    indexing.index_thread(thread.pk, embedder, lambda done: None)

    assert max(embedder.batches) <= 50
    assert sum(embedder.batches) == 82


def test_messages_that_are_deleted_meanwhile_get_no_vectors(thread, monkeypatch):
    class Deleting(CountingEmbedder):
        def embed(self, texts, kind):
            Message.objects.filter(number=1).delete()
            return super().embed(texts, kind)

    indexing.index_thread(thread.pk, Deleting(), lambda done: None)

    assert [row.message.number for row in Vector.objects.all()] == [2]


def test_a_blank_message_keeps_no_other_from_being_indexed(thread):
    """Providers refuse a blank text, so that the job of the thread failed each time."""

    class Refusing(CountingEmbedder):
        def embed(self, texts, kind):
            if not all(texts):
                raise EmbedderFailed("The input cannot be an empty string.")
            return super().embed(texts, kind)

    add_messages(thread, [" \n"])
    embedder = Refusing()

    counts = [indexing.index_thread(thread.pk, embedder, lambda done: None) for _ in range(2)]

    assert (counts, embedder.batches) == ([3, 0], [2])
    recalled = recall_messages(vectors_of_thread(thread.pk, embedder.name), embedder.embed(["teal"], "query"), 9)
    assert {item.message.number for item in recalled} == {1, 2}


def test_words_that_people_sent_as_signals_are_embedded_when_their_run_has_ended(thread):
    """Until then, the run may pass them to processors that mask them."""
    run_id = uuid4()
    for signal in (Signal("user", "It is teal."), Signal("user-message", "Or blue."), Signal("ping", "No words.")):
        append_signal(thread, signal, Author(None, ""), {})
    Message.objects.filter(text="It is teal.").update(seen_by=run_id)
    embedded = Message.objects.filter(role="signal", vectors__isnull=False).values_list("text", flat=True)

    index(thread)
    assert not embedded.exists()
    append_messages(thread, [NewMessage({"kind": "response", "parts": []})], run_id=run_id)
    index(thread)

    assert [*embedded] == ["It is teal."]


def test_vectors_go_with_their_message_and_thread(thread):
    index(thread)

    Message.objects.filter(number=1).delete()
    assert Vector.objects.count() == 1
    thread.delete()
    assert Vector.objects.count() == 0


def test_a_transfer_takes_the_vectors_along(thread, editor):
    index(thread)
    caller = memory_caller(editor)

    transfer_thread(caller, thread, "bob")

    assert {row.resource for row in Vector.objects.all()} == {get_or_create_resource(caller, "bob")}


def test_the_nightly_job_finds_what_is_missing(thread, editor):
    AgentFactory(id="plain", memory="last-messages")
    agent = recalling_agent()
    other = add_thread(editor, "t2", agent=agent, agent_key=agent.pk)
    unrelated = add_thread(editor, "t3", "carol")

    job = runner.run_now(indexing.INDEX_MISSING, {})

    # The other threads of the resource are recalled too.
    assert job.result == {"indexed": 4}
    assert {row.thread for row in Vector.objects.all()} == {thread, other}
    assert not unrelated.vectors.exists()


def test_the_nightly_job_finds_what_the_live_memory_and_its_variants_recall(thread, editor, caller):
    rules = {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": "pro"}]}
    recalling = {"options": {"semanticRecall": True}}
    tiered = AgentFactory(id="tiered", conditional={"memory": [{"value": recalling, "rules": rules}]})
    changed = AgentFactory(id="changed", memory=recalling)
    with change(publish=False):
        changed.edit({"memory": None})
    threads = {add_thread(editor, row.pk, row.pk, agent=row, agent_key=row.pk) for row in (tiered, changed)}

    assert runner.run_now(indexing.INDEX_MISSING, {}).result == {"indexed": 4}
    assert {row.thread for row in Vector.objects.all()} == threads
    message = {"resourceId": "tiered", "role": "user", "content": "Hello", "threadId": "tiered"}
    assert caller.post("/api/memory/save-messages", {"messages": [message]}).status_code == 200
    assert Job.objects.filter(kind=indexing.INDEX_MESSAGES).get().parameters["embedder"] == LOCAL


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_the_nightly_job_goes_on_although_the_embedder_returns_the_connection(thread, editor, monkeypatch):
    agent = recalling_agent()
    add_thread(editor, "t2", agent=agent, agent_key=agent.pk)
    add_thread(editor, "t3", agent=agent, agent_key=agent.pk)

    class ProviderLikeEmbedder(CountingEmbedder):
        def embed(self, texts, kind):
            return_connection()
            connection.close_pool()  # as the pool closes a connection that nobody needs for a while
            return super().embed(texts, kind)

    monkeypatch.setattr(indexing, "find_embedder", lambda name: ProviderLikeEmbedder(LOCAL))
    job = runner.run_now(indexing.INDEX_MISSING, {})

    assert (job.state, job.error, Vector.objects.values("thread").distinct().count()) == (Job.State.DONE, "", 3)


def test_an_embedder_that_fails_does_not_keep_the_nightly_job_from_the_others(thread, editor, caplog):
    recalling_agent()
    failing = AgentFactory(id="failing", memory={"options": {"semanticRecall": True}, "embedder": "local/a-unknown"})
    add_thread(editor, "t2", agent=failing, agent_key=failing.pk)
    used = add_thread(editor, "t3", "bob", agent_id="recaller", agent_key="recaller")

    job = runner.run_now(indexing.INDEX_MISSING, {})

    assert used.vectors.exists()
    assert (job.state, job.error[:16]) == (Job.State.FAILED, "Unknown embedder")
    assert "not indexed with the embedder local/a-unknown" in caplog.text


def test_messages_that_a_client_stores_are_indexed_if_their_agent_recalls(caller, editor):
    agent = recalling_agent()
    add_thread(editor, "t2", agent=agent, agent_key=agent.pk)
    add_thread(editor, "t3")
    body = {"resourceId": "alice", "role": "user", "content": "Hello"}

    for key in ("t2", "t3"):
        assert caller.post("/api/memory/save-messages", {"messages": [body | {"threadId": key}]}).status_code == 200

    (job,) = Job.objects.filter(kind=indexing.INDEX_MESSAGES)
    assert job.parameters["embedder"] == LOCAL


def test_an_unknown_embedder_fails_the_job_with_its_reason(thread):
    job = index(thread, "local/unknown")

    assert (job.state, job.error[:31]) == (Job.State.FAILED, "Unknown embedder 'local/unknown")


def test_vectors_of_an_embedder_that_nobody_uses_go_30_days_after_they_were_replaced(thread, age_vectors):
    indexing.index_thread(thread.pk, CountingEmbedder("old/embedder"), lambda done: None)
    age_vectors(60)
    index(thread)
    assert not replaced_vectors().exists()

    age_vectors(31, embedder=LOCAL)

    assert {row.embedder for row in replaced_vectors()} == {"old/embedder"}
    assert replaced_vectors().count() == 2


@pytest.mark.parametrize("memory", [None, {"options": {"semanticRecall": True}}])
def test_vectors_of_an_embedder_that_a_variant_uses_stay(thread, age_vectors, memory):
    rules = {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": "pro"}]}
    variant = {"value": {"options": {"semanticRecall": True}, "embedder": "old/embedder"}, "rules": rules}
    AgentFactory(id="tiered", memory=memory, conditional={"memory": [variant]})
    indexing.index_thread(thread.pk, CountingEmbedder("old/embedder"), lambda done: None)
    index(thread)

    age_vectors(31)

    assert not replaced_vectors().exists()


@pytest.fixture
def age_vectors():
    from datetime import timedelta

    from django.utils import timezone

    def age(days, **chosen):
        Vector.objects.filter(**chosen).update(created_at=timezone.now() - timedelta(days=days))

    return age
