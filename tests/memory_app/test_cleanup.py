"""Resources that nobody uses any more."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs_app import runner
from jobs_app.cleanup import CLEAN_UP
from memory_app.cleanup import unused_resources
from memory_app.models import Resource, WorkingRevision
from memory_app.working import values
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
