"""Search for messages by other words, with the embedders of this process and without a network."""

import itertools
import socket

import pytest

from agentcms.vectors import find_embedder
from memory_app.history.messages import NewMessage, append_messages
from memory_app.recall.indexing import index_thread
from memory_app.recall.search import embed_question, recall_messages, vectors_of_thread
from tests.factories import member
from tests.memory_app.conftest import add_thread
from tests.memory_app.recall.paraphrases import ENGLISH, GERMAN

pytestmark = pytest.mark.django_db

MULTILINGUAL, ENGLISH_ONLY = "local/multilingual", "local/minilm"
PERSONS = ["I", "We", "They", "Our guests", "The neighbours", "My colleagues", "The students", "Two customers"]
ACTS = ["ordered", "painted", "sold", "repaired", "forgot", "photographed", "borrowed", "returned", "cleaned", "found"]
THINGS = ["a bicycle", "the blue chairs", "an old map", "three lamps", "the fence", "a sack of rice", "some candles"]
TIMES = ["yesterday", "on Monday", "last winter", "before lunch"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Fail where Python opens a connection or looks up an address. Clients of databases do neither."""

    def refuse(*args, **kwargs):
        raise AssertionError("An embedder of this process must not use the network.")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_the_network_is_refused():
    with pytest.raises(AssertionError, match="network"):
        socket.create_connection(("127.0.0.1", 9))


def other_messages(count):
    """Return different sentences that answer none of the questions."""
    sentences = itertools.product(PERSONS, ACTS, THINGS, TIMES)
    return [" ".join(words) + "." for words in itertools.islice(sentences, count)]


def share_found(texts, pairs, embedder=MULTILINGUAL):
    """Return the shares of questions whose message comes first, and among the first four."""
    thread = add_thread(member("editor"), texts=())
    data = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]} for text in texts]
    append_messages(thread, [NewMessage(item) for item in data])
    index_thread(thread.pk, find_embedder(embedder), lambda done: None)
    places = []
    for text, question in pairs:
        recalled = recall_messages(vectors_of_thread(thread.pk, embedder), embed_question(embedder, question), 4)
        texts_found = [item.message.text for item in recalled]
        places.append(texts_found.index(text) if text in texts_found else 4)
    return sum(place == 0 for place in places) / len(pairs), sum(place < 4 for place in places) / len(pairs)


@pytest.mark.parametrize(("embedder", "least"), [(MULTILINGUAL, (0.75, 0.95)), (ENGLISH_ONLY, (0.85, 0.95))])
def test_english_paraphrases_are_found(embedder, least):
    shares = share_found([text for text, _ in ENGLISH], ENGLISH, embedder)

    assert len(ENGLISH) == 40
    assert [share >= limit for share, limit in zip(shares, least, strict=True)] == [True, True], shares


def test_german_paraphrases_are_found():
    first, in_four = share_found([text for text, _ in GERMAN], GERMAN)

    assert len(GERMAN) == 12
    assert (first >= 0.7, in_four >= 0.85) == (True, True), (first, in_four)


@pytest.mark.parametrize(("embedder", "least"), [(MULTILINGUAL, (0.55, 0.55)), (ENGLISH_ONLY, (0.75, 0.8))])
def test_paraphrases_are_found_among_many_other_messages(embedder, least, is_drill):
    others = other_messages(2000 if is_drill else 200)

    shares = share_found([text for text, _ in ENGLISH] + others, ENGLISH, embedder)

    assert len({*others}) == len(others)
    assert [share >= limit for share, limit in zip(shares, least, strict=True)] == [True, True], shares
