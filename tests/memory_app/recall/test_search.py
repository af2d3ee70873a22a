"""The ranking of messages by their vectors."""

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentcms.vectors.quantize import pack_vector
from memory_app.models import Message, Vector
from memory_app.recall.search import rank_messages, recall_messages, vectors_of_resource
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

EMBEDDER = "local/multilingual"


@pytest.fixture
def thread(editor):
    return add_thread(editor, texts=[("user", f"Message {number}") for number in range(6)])


def add_vectors(thread, rows):
    """Store a row as the vector of each message of a thread, in their order."""
    messages = Message.objects.filter(thread=thread).order_by("number")
    for message, row in zip(messages, rows, strict=True):
        scale, data = pack_vector(row)
        Vector.objects.create(
            message=message,
            part=0,
            embedder=EMBEDDER,
            resource=thread.resource,
            thread=thread,
            scale=scale,
            data=data,
        )


def ranked_numbers(thread, *queries):
    hits = rank_messages(vectors_of_resource(thread.resource_id, EMBEDDER), np.stack(queries))
    return [Message.objects.get(pk=hit.message_id).number for hit in hits]


def test_the_newest_vectors_are_read_from_their_index_alone(thread, settings):
    settings.RECALL_MOST = 3
    rows = np.eye(6, 8, dtype=np.float32)
    add_vectors(thread, rows)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        hits = [*rank_messages(vectors_of_resource(thread.resource_id, EMBEDDER), rows[4:5])]

    # A process also looks for pgvector now and then.
    (query,) = (query for query in queries.captured_queries if "memory_app_vector" in query["sql"])
    assert "JOIN" not in query["sql"]  # with the messages it took three times as long
    newest = Message.objects.filter(thread=thread).order_by("-pk")[:3]
    assert {hit.message_id for hit in hits} == {row.pk for row in newest}


def test_the_most_similar_part_of_a_question_counts(thread):
    rows = np.eye(6, 8, dtype=np.float32)
    add_vectors(thread, rows)

    assert ranked_numbers(thread, rows[1], rows[4] * 0.5)[:2] == [2, 5]


def test_messages_below_the_threshold_are_not_recalled(thread):
    rows = np.eye(6, 8, dtype=np.float32)
    add_vectors(thread, rows)

    recalled = recall_messages(vectors_of_resource(thread.resource_id, EMBEDDER), rows[1:2], 4, threshold=0.5)

    assert [item.message.number for item in recalled] == [2]


def test_vectors_of_another_length_are_left_out(thread):
    rows = [np.ones(8, np.float32)] * 5 + [np.ones(4, np.float32)]
    add_vectors(thread, rows)

    assert sorted(ranked_numbers(thread, rows[0])) == [1, 2, 3, 4, 5]


def test_a_message_that_a_thread_repeats_takes_one_place_and_few_queries(editor, django_assert_max_num_queries):
    texts = [("assistant", "Done.")] * 500 + [("user", "Book the boat.")]
    thread = add_thread(editor, texts=texts)
    add_vectors(thread, [np.array([1, 0.1, 0, 0], np.float32)] * 500 + [np.array([0.1, 1, 0, 0], np.float32)])
    query = np.array([[1, 0, 0, 0]], np.float32)

    with django_assert_max_num_queries(12):
        recalled = recall_messages(vectors_of_resource(thread.resource_id, EMBEDDER), query, 4, distinct=True)

    assert [item.message.text for item in recalled] == ["Done.", "Book the boat."]


def test_words_that_were_repeated_as_a_signal_take_one_place(editor):
    thread = add_thread(editor, texts=[("user", "Where is the boat?")] * 2 + [("assistant", "In the harbour.")])
    signal = {"signal": {"type": "user", "tagName": "", "attributes": {}}}
    thread.messages.filter(number=2).update(role="signal", attributes=signal)
    add_vectors(thread, [np.array([1, 0], np.float32)] * 2 + [np.array([0, 1], np.float32)])

    vectors, query = vectors_of_resource(thread.resource_id, EMBEDDER), np.array([[1, 0]], np.float32)
    recalled = recall_messages(vectors, query, 2, distinct=True)

    assert [item.message.text for item in recalled] == ["Where is the boat?", "In the harbour."]


def test_the_messages_around_each_hit_take_as_few_queries_as_those_around_one(editor, django_assert_max_num_queries):
    """Tool results belong to the answer before them, under which the API shows them."""
    threads = [add_thread(editor, texts=[("user", f"Message {number}") for number in range(6)], key=k) for k in "ab"]
    for thread in threads:
        add_vectors(thread, [np.array([1, number / 10], np.float32) for number in range(6)])
        thread.messages.filter(number=4).update(head_number=3)
    vectors = vectors_of_resource(threads[0].resource_id, EMBEDDER)

    with django_assert_max_num_queries(5):
        recalled = recall_messages(vectors, np.array([[1, 0]], np.float32), 12, before=2, after=1)

    around = {
        (item.message.thread_id, item.message.number): (
            [row.number for row in item.before],
            [row.number for row in item.after],
        )
        for item in recalled
    }
    expected = {
        1: ([], [2]),
        2: ([1], [3, 4]),
        3: ([1, 2], [5]),
        4: ([1, 2], [5]),
        5: ([2, 3, 4], [6]),
        6: ([3, 4, 5], []),
    }
    assert around == {(thread.pk, number): expected[number] for thread in threads for number in expected}
    assert all(row.thread_id == item.message.thread_id for item in recalled for row in (*item.before, *item.after))
