"""Resources that nobody uses any more."""

from datetime import timedelta

import pytest
from django.utils import timezone

from memory_app.cleanup import unused_resources
from memory_app.models import Resource
from tests.factories import member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db


def test_a_resource_without_threads_expires_after_thread_days(settings):
    settings.THREAD_DAYS = 30
    user = member("editor")
    realm = add_thread(user, resource="alice").realm
    Resource.objects.create(realm=realm, key="bob")
    Resource.objects.create(realm=realm, key="carol")
    old = timezone.now() - timedelta(days=31)
    Resource.objects.filter(key__in=("alice", "bob")).update(updated_at=old)

    assert [resource.key for resource in unused_resources()] == ["bob"]
