"""Copies of threads: which messages they have, in which order, and what goes with them."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from jobs_app.models import Job
from memory_app.history import copies
from memory_app.models import Message, Resource, Thread, WorkingRevision
from memory_app.working import values
from memory_app.working.values import Origin
from tests.factories import AgentFactory
from tests.memory_app.conftest import add_thread, recalling_agent

pytestmark = pytest.mark.django_db

CLONE = "/api/memory/threads/t/clone"
FOUR = [("user", "One"), ("assistant", "Two"), ("user", "Three"), ("assistant", "Four")]


def copied_texts(caller, **options):
    answer = caller.post(CLONE, {"options": options})
    return [message["content"]["content"] for message in answer.body["clonedMessages"]]


def test_messages_keep_their_order_over_several_batches(caller, editor, monkeypatch):
    add_thread(editor, texts=FOUR)
    monkeypatch.setattr(copies, "BATCH_SIZE", 1)

    assert copied_texts(caller) == ["One", "Two", "Three", "Four"]
    assert copied_texts(caller, messageLimit=2) == ["Three", "Four"]


def test_the_size_of_a_copy_is_that_of_all_batches(caller, editor, monkeypatch):
    add_thread(editor, texts=FOUR)
    sizes = [len(str(data)) for data in Message.objects.values_list("data", flat=True)]
    monkeypatch.setattr(copies, "BATCH_SIZE", 1)
    monkeypatch.setattr(copies, "MAX_COPY_MB", (sum(sizes) - 1) / 1024**2)

    assert caller.post(CLONE, {}).status_code == 400
    monkeypatch.setattr(copies, "MAX_COPY_MB", sum(sizes) / 1024**2)
    assert caller.post(CLONE, {}).status_code == 200


def test_a_message_of_several_rows_is_copied_as_one(caller, editor):
    thread = add_thread(editor, texts=FOUR)
    thread.messages.filter(number=3).update(head_number=2, role="assistant")

    copied = caller.post(CLONE, {"newThreadId": "c", "options": {"messageLimit": 2}}).body["clonedMessages"]

    assert len(copied) == 2
    rows = Message.objects.filter(thread__key="c").order_by("number").values_list("number", "head_number", "text")
    assert [*rows] == [(1, 1, "Two"), (2, 1, "Three"), (3, 3, "Four")]


def test_a_time_includes_the_message_of_that_moment(caller, editor):
    thread = add_thread(editor)
    thread.messages.update(created_at=datetime(2026, 5, 1, 12, tzinfo=UTC))

    assert len(copied_texts(caller, messageFilter={"startDate": "2026-05-01T12:00:00Z"})) == 2


def test_no_message_is_copied_if_none_is_named(caller, editor):
    add_thread(editor)

    assert copied_texts(caller, messageFilter={"messageIds": []}) == []


def test_a_copy_belongs_to_the_agent_of_the_thread(caller, editor, agent):
    add_thread(editor, agent=agent, agent_key=agent.pk, agent_owner_id="support")

    caller.post(CLONE, {"newThreadId": "c"})

    copy = Thread.objects.get(key="c")
    assert (copy.agent, copy.agent_key, copy.agent_owner_id) == (agent, agent.pk, "support")


def test_a_copy_of_a_thread_without_working_memory_has_no_history(caller, editor, agent):
    add_thread(editor, agent=agent)

    caller.post(CLONE, {"newThreadId": "c"})

    assert Thread.objects.get(key="c").working_memory is None
    assert not WorkingRevision.objects.exists()


def test_the_answer_is_the_copy_as_it_is_stored(caller, editor):
    memory = {"options": {"workingMemory": {"enabled": True, "scope": "thread"}}}
    thread = add_thread(editor, agent=AgentFactory(id="noting", memory=memory))
    values.replace_text(thread, "- Likes trams", Origin(user_id=editor.pk))

    answer = caller.post(CLONE, {"newThreadId": "c"})

    assert answer.body["thread"] == caller.get("/api/memory/threads/c").body


def test_the_messages_of_a_copy_are_indexed_and_observed(caller, editor):
    thread = add_thread(editor, texts=[("user", "word " * 200)], agent=recalling_agent())
    caller.post(CLONE, {"newThreadId": "c"})
    observation = {"observation": {"messageTokens": 100}}
    observing = AgentFactory(id="observing", memory={"options": {}, "observationalMemory": observation})
    Thread.objects.filter(pk=thread.pk).update(agent=observing)
    caller.post(CLONE, {"newThreadId": "d"})

    kinds = dict(Job.objects.values_list("parameters__thread", "kind"))
    ids = dict(Thread.objects.values_list("key", "pk"))
    assert kinds == {ids["c"]: "index_messages", ids["d"]: "observe_thread"}


def test_a_copy_of_what_is_deleted_meanwhile_is_refused(caller, editor, monkeypatch):
    add_thread(editor)
    copy_messages = copies.copy_messages

    def forget_and_copy(*args):
        Resource.objects.filter(key="alice").update(forgetting_since=timezone.now())
        copy_messages(*args)

    monkeypatch.setattr(copies, "copy_messages", forget_and_copy)
    refused = caller.post(CLONE, {"newThreadId": "c", "resourceId": "bob"})

    assert (refused.status_code, refused.body["code"]) == (409, "resource_forgotten")
    assert not Thread.objects.filter(key="c").exists()
