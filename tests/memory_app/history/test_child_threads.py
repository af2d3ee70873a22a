"""The threads of sub-agents: whose they are, and how long they are kept."""

from datetime import timedelta
from uuid import uuid4, uuid5

import pytest
from django.utils import timezone

from memory_app.history.threads import CHILD_NAMESPACE, note_use_of_resources, open_child_thread
from memory_app.models import Resource, Thread
from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.django_db

LONG_AGO = timezone.now() - timedelta(days=100)


@pytest.fixture
def parent(editor):
    return add_thread(editor)


def test_a_child_thread_belongs_to_whom_its_parent_belongs(parent):
    parent.experiment_id = uuid4()
    parent.save()

    child = open_child_thread(parent, "helper", agent_owner_id="support")

    own = ("realm", "resource_id", "resource_key", "user_id", "experiment_id")
    assert [getattr(child, name) for name in own] == [getattr(parent, name) for name in own]
    assert (child.parent, child.agent_key, child.agent_owner_id) == (parent, "helper", "support")


def test_each_sub_agent_of_a_thread_has_its_own(parent, editor):
    child = open_child_thread(parent, "helper")
    other = add_thread(editor, "other")

    assert open_child_thread(parent, "helper") == child
    assert len({child, open_child_thread(parent, "writer"), open_child_thread(other, "helper")}) == 3


def test_a_thread_of_another_realm_with_the_same_key_is_not_used(parent):
    key = str(uuid5(CHILD_NAMESPACE, f"{parent.pk} helper"))
    foreign = add_thread(UserFactory(), key)

    child = open_child_thread(parent, "helper")

    assert child != foreign
    assert child.realm == parent.realm


def test_a_child_thread_that_is_used_is_not_old(parent):
    child = open_child_thread(parent, "helper")
    Thread.objects.update(updated_at=LONG_AGO)

    open_child_thread(parent, "helper")

    assert Thread.objects.get(pk=child.pk).updated_at > LONG_AGO
    assert Thread.objects.get(pk=parent.pk).updated_at == LONG_AGO


def test_a_child_of_a_deleted_thread_is_not_created(parent):
    stale = Thread.objects.get(pk=parent.pk)
    parent.delete()

    with pytest.raises(Thread.DoesNotExist):
        open_child_thread(stale, "helper")


def test_only_the_resources_of_the_threads_count_as_used(parent, editor):
    add_thread(editor, "other", "bob")
    Resource.objects.update(updated_at=LONG_AGO)

    note_use_of_resources([parent.pk])

    assert [*Resource.objects.filter(updated_at__gt=LONG_AGO)] == [parent.resource]
