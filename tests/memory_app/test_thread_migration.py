"""The migration that puts the threads of the previous release into realms, forwards and backwards."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.migrated import migrate_to, new_database

BEFORE = [("memory_app", "0001_threads"), ("runs_app", "0013_move_threads")]
AFTER = [("memory_app", "0004_unique_keys")]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def before():
    """Return the models before the migration, of a new database."""
    with new_database():
        yield migrate_to(*BEFORE)


def add_thread(apps, user, key, agent_key, age, resource=""):
    thread = apps.get_model("memory_app", "Thread").objects.create(
        user=user, key=key, agent_key=agent_key, resource=resource, updated_at=timezone.now() - timedelta(days=age)
    )
    message = apps.get_model("memory_app", "Message")
    texts = [("request", "user-prompt", "Hi"), ("response", "text", "Hello"), ("response", "text", "again")]
    for number, (kind, part, text) in enumerate(texts, 1):
        data = {"kind": kind, "parts": [{"part_kind": part, "content": f"{text} {key}"}]}
        message.objects.create(thread=thread, number=number, data=data)
    return thread.pk


def rows(apps, *columns):
    return set(apps.get_model("memory_app", "Thread").objects.values_list(*columns))


def test_threads_get_realms_and_unique_keys_and_give_them_back(before):
    users = [before.get_model("auth", "User").objects.create(username=name) for name in ("ann", "ben")]
    ann, ben = (f"u{user.pk}" for user in users)
    add_thread(before, users[0], "t", "old", 3)
    add_thread(before, users[0], "t", "new", 1, "alice")
    add_thread(before, users[0], "t~old", "third", 2)
    add_thread(before, users[1], "t", "old", 5)

    after = migrate_to(*AFTER)

    assert rows(after, "realm", "key", "agent_key", "resource_key", "resource__key", "last_number") == {
        (ann, "t", "new", "alice", "alice", 3),
        (ann, "t~old", "third", ann, ann, 3),
        (ann, "t~old~2", "old", ann, ann, 3),
        (ben, "t", "old", ben, ben, 3),
    }
    messages = after.get_model("memory_app", "Message").objects.filter(thread__realm=ben)
    assert [*messages.values_list("number", "role", "text", "tokens", "head_number")] == [
        (1, "user", "Hi t", 1, 1),
        (2, "assistant", "Hello t", 2, 2),
        (3, "assistant", "again t", 2, 2),
    ]
    assert None not in {*messages.values_list("key", flat=True)}

    thread, resource = after.get_model("memory_app", "Thread"), after.get_model("memory_app", "Resource")
    carol = {"realm": "osupport", "resource": resource.objects.create(realm="osupport", key="carol")}
    thread.objects.create(**carol, key="t", user_id=users[1].pk, agent_key="old", resource_key="carol")
    thread.objects.create(**carol, key="lost", agent_key="old", resource_key="carol")

    again = migrate_to(*BEFORE)

    keys = rows(again, "user__username", "agent_key", "key", "resource")
    moved = next(row for row in keys if row[3] == "carol")
    assert moved[2] != "t"  # this key belongs to the user's own thread with the agent
    # A key that got two suffixes keeps what makes it unique, and a thread without a user cannot stay.
    assert keys - {moved} == {
        ("ann", "new", "t", "alice"),
        ("ann", "third", "t~old", ""),
        ("ann", "old", "t~old~2", ""),
        ("ben", "old", "t", ""),
    }
    assert again.get_model("memory_app", "Message").objects.count() == 12
