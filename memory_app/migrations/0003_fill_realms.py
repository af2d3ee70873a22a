"""Put existing threads into the realm of their user, and derive the new columns of their messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db import migrations, transaction
from django.db.models import Max, Min, Q

from agentcms.ids import uuid7

USER, ASSISTANT, TOOL = "user", "assistant", "tool"
BYTES_PER_TOKEN = 4
BATCH_SIZE = 1000  # rows per transaction
MAX_KEY_LENGTH = 256


def fill(apps: Any, schema_editor: Any) -> None:
    for user_id in in_batches(apps.get_model("memory_app", "Thread").objects.filter(realm=None), "user_id"):
        fill_user(apps, user_id)
    fill_messages(apps)


def in_batches(rows: Any, column: str) -> Iterator[Any]:
    """Yield the distinct values of a column in order."""
    last = None
    while True:
        following = rows.filter(**{f"{column}__gt": last}) if last is not None else rows
        last = following.aggregate(first=Min(column))["first"]
        if last is None:
            return
        yield last


def fill_user(apps: Any, user_id: int) -> None:
    """Give the threads of a user their realm and resource. Of several with one key, the newest keeps it."""
    Thread = apps.get_model("memory_app", "Thread")
    threads = Thread.objects.filter(user_id=user_id, realm=None).order_by("-updated_at", "-pk")
    taken = set(Thread.objects.filter(realm=f"u{user_id}").values_list("key", flat=True))
    while batch := list(threads[:BATCH_SIZE]):
        with transaction.atomic():
            for thread in batch:
                place(apps, thread, taken)


def place(apps: Any, thread: Any, taken: set[str]) -> None:
    realm = f"u{thread.user_id}"
    thread.key = free_key(thread.key, thread.agent_key, taken)
    taken.add(thread.key)
    resource, _ = apps.get_model("memory_app", "Resource").objects.get_or_create(
        realm=realm, key=thread.resource_key or realm, defaults={"user_id": thread.user_id}
    )
    thread.realm, thread.resource, thread.resource_key = realm, resource, resource.key
    thread.last_number = thread.messages.aggregate(last=Max("number"))["last"] or 0
    thread.save(update_fields=["key", "realm", "resource", "resource_key", "last_number"])


def free_key(key: str, agent_key: str, taken: set[str]) -> str:
    """Return the key, or `key~agent` if another thread has it."""
    candidate, count = key, 1
    while candidate in taken:
        suffix = f"~{agent_key}" + (f"~{count}" if count > 1 else "")
        candidate, count = key[: MAX_KEY_LENGTH - len(suffix)] + suffix[:MAX_KEY_LENGTH], count + 1
    return candidate


def fill_messages(apps: Any) -> None:
    """Fill the columns of messages, whole threads at a time."""
    Message = apps.get_model("memory_app", "Message")
    unfilled = Message.objects.filter(key=None).order_by("thread_id", "number")
    while batch := list(unfilled[:BATCH_SIZE]):
        if len(batch) == BATCH_SIZE and batch[0].thread_id != batch[-1].thread_id:
            batch = [row for row in batch if row.thread_id != batch[-1].thread_id]
        with transaction.atomic():
            for _, rows in groupby(batch, attrgetter("thread_id")):
                fill_rows([*rows])
            Message.objects.bulk_update(batch, ["key", "role", "text", "tokens", "head_number"], batch_size=100)


def fill_rows(rows: list[Any]) -> None:
    for row in rows:
        row.key = str(uuid7())
        row.role, row.text, row.tokens = derive_fields(row.data)
    positions = head_numbers([row.role for row in rows], 0)
    for row, position in zip(rows, positions, strict=True):
        row.head_number = rows[position].number


# --- As this release derives fields of messages. A later one may derive them in another way.


def derive_fields(data: dict[str, Any]) -> tuple[str, str, int]:
    """Return the role, the text and the estimated number of tokens of a message."""
    parts: list[dict[str, Any]] = data.get("parts") or []
    if data.get("kind") == "response":
        role, kind = ASSISTANT, "text"
    else:
        role = USER if any(part.get("part_kind") == "user-prompt" for part in parts) else TOOL
        kind = "user-prompt"
    text = "\n".join(text_of(part.get("content")) for part in parts if part.get("part_kind") == kind)
    return role, text, sum(map(tokens_of, parts))


def tokens_of(part: dict[str, Any]) -> int:
    text = "".join(str(part[name]) for name in ("content", "args", "tool_name") if part.get(name))
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else []
    return "\n".join(item if isinstance(item, str) else str(item.get("content", "")) for item in items)


def head_numbers(roles: list[str], first: int) -> list[int]:
    """Return for each message the position of the first one that the API shows with it."""
    heads: list[int] = []
    for index, role in enumerate(roles):
        continues = bool(index) and role != USER and roles[index - 1] != USER
        heads.append(heads[-1] if continues else first + index)
    return heads


# --- Back to the previous release


def restore(apps: Any, schema_editor: Any) -> None:
    """Give threads the keys and resources of the previous release. Threads without a user cannot stay."""
    Thread = apps.get_model("memory_app", "Thread")
    Thread.objects.filter(user_id=None).delete()
    for user_id in in_batches(Thread.objects.exclude(realm=None), "user_id"):
        with transaction.atomic():
            restore_user(Thread, user_id)
    apps.get_model("memory_app", "Message").objects.update(key=None)


def restore_user(Thread: Any, user_id: int) -> None:
    realm = f"u{user_id}"
    # The threads of end users of a team had no place of their own.
    others = Thread.objects.filter(user_id=user_id).exclude(Q(realm=realm) | Q(realm=None))
    taken = set(Thread.objects.filter(user_id=user_id).values_list("agent_key", "key"))
    for thread in others:
        key = thread.key
        while (thread.agent_key, thread.key) in taken - {(thread.agent_key, key)} or thread.key == key:
            thread.key = f"{thread.key[:200]}~{thread.pk}"
        taken.add((thread.agent_key, thread.key))
        thread.save(update_fields=["key"])
    for thread in Thread.objects.filter(user_id=user_id, key__contains="~"):
        key = thread.key.removesuffix(f"~{thread.agent_key}")
        if (thread.agent_key, key) not in taken:
            taken.add((thread.agent_key, key))
            thread.key = key
            thread.save(update_fields=["key"])
    Thread.objects.filter(user_id=user_id, resource_key=realm).update(resource_key="")
    Thread.objects.filter(user_id=user_id).update(realm=None, resource=None)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("memory_app", "0002_resources"),
    ]

    operations = [migrations.RunPython(fill, restore)]
