"""Resources that nobody uses any more."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs_app import runner
from jobs_app.cleanup import CLEAN_UP
from memory_app.cleanup import THREADS_PER_BATCH, unused_resources
from memory_app.history.threads import transfer_thread
from memory_app.models import Resource, Thread, WorkingRevision
from memory_app.realms import memory_caller
from memory_app.working import values
from runs_app.memory.thread_deletion import delete_threads
from tests.factories import member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


def test_a_resource_without_threads_and_runs_expires_after_thread_days(settings):
    settings.THREAD_DAYS = 30
    user = member("editor")
    realm = add_thread(user, resource="alice").realm
    Resource.objects.create(realm=realm, key="bob")
    Resource.objects.create(realm=realm, key="carol")
    RunFactory(resource=Resource.objects.create(realm=realm, key="dave"))  # whose data could not be deleted any more
    old = timezone.now() - timedelta(days=31)
    Resource.objects.filter(key__in=("alice", "bob", "dave")).update(updated_at=old)

    assert [resource.key for resource in unused_resources()] == ["bob"]


@pytest.mark.parametrize("is_moved", [True, False], ids=["transferred", "deleted"])
def test_a_resource_whose_last_thread_was_in_use_until_now_stays(settings, is_moved):
    """A person who deletes a conversation does not lose the notes about all of them the next night."""
    settings.THREAD_DAYS = 30
    user = member("editor")
    thread = add_thread(user, resource="alice")
    values.replace_text(thread.resource, "Alice likes tea", values.Origin())
    Resource.objects.update(updated_at=timezone.now() - timedelta(days=31))

    if is_moved:
        transfer_thread(memory_caller(user), thread, "bob")
    else:
        delete_threads([thread.pk])

    runner.run_claimed(str(runner.enqueue(CLEAN_UP).pk))
    assert Resource.objects.get(key="alice").working_memory == "Alice likes tea"


def test_the_clean_up_deletes_them_with_their_working_memory(settings):
    settings.THREAD_DAYS = 30
    user = member("editor")
    old = Resource.objects.create(realm=f"u{user.pk}", key="bob")
    values.replace_text(old, "Bob likes tea", values.Origin())
    Resource.objects.update(updated_at=timezone.now() - timedelta(days=31))

    removed = runner.run_claimed(str(runner.enqueue(CLEAN_UP).pk)).result["removed"]

    assert removed["resources"] == 1
    assert not Resource.objects.exists()
    assert not WorkingRevision.objects.exists()


def test_few_threads_are_deleted_at_once_because_each_may_have_thousands_of_messages(settings):
    settings.THREAD_DAYS = 30
    user = member("editor")
    for number in range(THREADS_PER_BATCH + 1):
        add_thread(user, f"t{number}", texts=[("user", "Hello")])
    Thread.objects.update(updated_at=timezone.now() - timedelta(days=31))

    with CaptureQueriesContext(connection) as queries:
        removed = runner.run_claimed(str(runner.enqueue(CLEAN_UP).pk)).result["removed"]

    assert removed["threads"] == THREADS_PER_BATCH + 1
    assert len([query for query in queries if query["sql"].startswith('DELETE FROM "runs_app_thread"')]) == 2
