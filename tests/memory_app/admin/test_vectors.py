"""Vectors in the admin."""

import re
from html import unescape
from uuid import uuid4

import pytest
from django.urls import reverse

from jobs_app import runner
from jobs_app.models import Job
from memory_app.admin import oldest_first
from memory_app.models import Thread, Vector
from memory_app.recall.indexing import INDEX_MESSAGES
from tests.factories import UserFactory, member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

LIST = reverse("admin:memory_app_vector_changelist")


@pytest.fixture
def thread(editor):
    thread = add_thread(editor, texts=[("user", "A secret about teal"), ("assistant", "Noted.")])
    runner.run_now(INDEX_MESSAGES, {"thread": thread.pk, "embedder": "local/multilingual"})
    return thread


@pytest.fixture
def superuser(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def test_a_conversation_is_indexed_again(superuser, thread):
    before = {*Vector.objects.values_list("pk", flat=True)}
    action = {"action": "index_again", "_selected_action": [min(before)]}

    page = superuser.post(LIST, action, follow=True).content.decode()
    (job,) = Job.objects.filter(kind=INDEX_MESSAGES, state=Job.State.QUEUED)
    runner.run_claimed(str(job.pk))

    assert "1 conversation is indexed again." in page
    after = {*Vector.objects.values_list("pk", flat=True)}
    assert (len(after), before & after) == (2, set())


def test_what_one_action_leaves_is_said_and_indexed_by_the_next(superuser, thread, editor, monkeypatch):
    monkeypatch.setattr(oldest_first, "MAX_CONVERSATIONS", 1)
    other = add_thread(editor, "other", texts=[("user", "A secret about plum")])
    runner.run_now(INDEX_MESSAGES, {"thread": other.pk, "embedder": "local/multilingual"})
    action = {"action": "index_again", "select_across": "1", "_selected_action": [Vector.objects.first().pk]}

    pages = []
    for indexed in (thread, other):
        pages.append(superuser.post(LIST, action, follow=True).content.decode())
        (job,) = Job.objects.filter(kind=INDEX_MESSAGES, state=Job.State.QUEUED)
        assert job.parameters["thread"] == indexed.pk
        runner.run_claimed(str(job.pk))

    assert all("One action takes 1 conversations. Repeat it for the other 1." in page for page in pages)


def test_vectors_that_no_embedder_here_could_make_again_stay(superuser, thread):
    Vector.objects.update(embedder="local/gone")
    action = {"action": "index_again", "_selected_action": [Vector.objects.first().pk]}

    page = superuser.post(LIST, action, follow=True).content.decode()

    assert "Vectors of embedders that are not available stay: local/gone." in page
    assert Vector.objects.filter(embedder="local/gone").count() == 2
    assert not Job.objects.filter(kind=INDEX_MESSAGES, state=Job.State.QUEUED).exists()


def test_a_vector_links_to_its_conversation_in_the_realm_of_a_team(superuser, thread):
    Thread.objects.update(realm="oR&D+")

    link = re.search(r'href="(/threads/[^"]*)"', superuser.get(LIST).content.decode())[1]

    assert superuser.get(unescape(link)).context["thread"] == thread


def test_a_vector_of_an_experiment_has_no_link_because_its_thread_has_no_page(superuser, thread):
    thread.experiment_id = uuid4()
    thread.save()

    page = superuser.get(LIST).content.decode()

    assert thread.key in page
    assert f"/threads/{thread.key}" not in page


def test_vectors_are_listed_without_texts_and_cannot_be_changed(superuser, thread):
    vector = Vector.objects.first()
    change = reverse("admin:memory_app_vector_change", args=[vector.pk])

    pages = superuser.get(LIST).content.decode() + superuser.get(change).content.decode()

    assert "local/multilingual" in pages
    assert "alice in u" in pages
    assert "secret" not in pages
    assert superuser.post(reverse("admin:memory_app_vector_delete", args=[vector.pk])).status_code == 403


def test_other_staff_are_offered_no_vectors(client, thread):
    client.force_login(member("manager", is_staff=True))
    action = {"action": "index_again", "_selected_action": [Vector.objects.first().pk]}

    assert LIST not in client.get("/admin/").content.decode()
    assert (client.get(LIST).status_code, client.post(LIST, action).status_code) == (403, 403)
    assert Vector.objects.count() == 2
    assert not Job.objects.filter(state=Job.State.QUEUED).exists()
