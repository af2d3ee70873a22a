"""Threads: their creation and lookup, for one caller."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid5

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from access_app.models import printable_id
from agentcms.errors import Conflict, Forbidden, NotFound
from agentcms.ids import uuid7
from memory_app.history.locks import lock_threads, tree_of
from memory_app.models import Resource, Thread, Vector
from memory_app.realms import MAX_KEY_LENGTH, MemoryCaller
from memory_app.working.creation import write_initial_memory

if TYPE_CHECKING:
    from django.contrib.auth.models import User

CHILD_NAMESPACE = UUID("6f1c0b1e-8f0d-5d3a-9a55-0c1f6a7c2b90")  # of the keys of the threads of sub-agents
THREAD_KEY_MESSAGE = f"This must be a text of 1 to {MAX_KEY_LENGTH} printable characters without a slash."


def is_thread_key(value: object) -> bool:
    """Return True for a valid thread ID. A client writes it into a path without encoding it."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_KEY_LENGTH:
        return False
    try:
        printable_id(value)
    except ValidationError:
        return False
    return True


def thread_not_found(key: str) -> NotFound:
    """Build the error of a thread that is missing or not visible."""
    return NotFound(f"Thread with id {key} not found")


def other_resource(key: str) -> Forbidden:
    """Build the error of a thread of another resource in the realm."""
    return Forbidden(
        f"Thread {key} belongs to another resource. Send the resource it began with, or use another thread.",
        "other_resource",
    )


def find_thread(caller: MemoryCaller, key: str, resource: str) -> Thread | None:
    """Return the thread with this key that the caller may read, or None. One of its own realm comes first.

    With a named resource, a thread of that resource comes first, and one of another realm is only found if it belongs
    to that resource. Otherwise a participant who means a thread of their own would write into that of somebody else,
    which has the same key. The resource of a caller that serves only one is not compared. Raise Forbidden for a thread
    of another resource of the realm, if the caller serves only one resource.
    """
    named = "" if caller.is_bound else resource
    matching: list[Thread] = [
        thread
        for thread in Thread.objects.for_caller(caller).filter(key=key)
        if thread.realm == caller.realm or named in ("", thread.resource_key)
    ]
    if matching:
        return min(matching, key=lambda thread: (named not in ("", thread.resource_key), thread.realm != caller.realm))
    if caller.is_bound and Thread.objects.filter(realm=caller.realm, key=key).exists():
        raise other_resource(key)
    return None


def get_thread(caller: MemoryCaller, key: str, resource: str = "") -> Thread:
    """Return a thread that the caller may read. Raise NotFound.

    Raise Forbidden if it belongs to another resource than the named one. A blank name is not compared.
    """
    thread = find_thread(caller, key, resource) if is_thread_key(key) else None
    if thread is None:
        raise thread_not_found(key)
    named = "" if caller.is_bound else resource
    if named and thread.resource_key != named:
        raise other_resource(key)
    return thread


def get_own_thread(caller: MemoryCaller, key: str, resource: str) -> Thread:
    """Return a thread that the caller may change: one of its realm. Raise NotFound or Forbidden."""
    caller.require_write()
    thread = get_thread(caller, key, resource)
    if thread.realm != caller.realm:
        raise Forbidden(f"Thread {key} belongs to somebody else. Participants can read it and write messages.")
    return thread


def get_or_create_resource(caller: MemoryCaller, key: str) -> Resource:
    """Return the resource with this key in the realm of the caller. Raise Conflict while its data is deleted."""
    user_id = caller.user.pk if caller.owner_id is None else None
    resource, _ = Resource.objects.get_or_create(realm=caller.realm, key=key, defaults={"user_id": user_id})
    reject_forgotten(resource)
    return resource


def reject_forgotten(resource: Resource | None) -> None:
    """Raise Conflict while the data of a resource is deleted."""
    if resource is not None and resource.forgetting_since is not None:
        message = f"All data of the resource {resource.key} is being deleted. Try again shortly."
        raise Conflict(message, "resource_forgotten")


def create_thread(caller: MemoryCaller, resource: Resource, key: str = "", **columns: Any) -> Thread:
    """Create a thread of a resource, and write the working memory that its metadata sets.

    Without a key it gets a new one. Raise IntegrityError if the key is taken.
    """
    thread = insert_thread(caller, resource, key, **columns)
    write_initial_memory(thread)
    return thread


def insert_thread(caller: MemoryCaller, resource: Resource, key: str = "", **columns: Any) -> Thread:
    """Create the row of a thread. Without a key it gets a new one. Raise IntegrityError if the key is taken."""
    return Thread.objects.create(
        realm=caller.realm,
        key=key or str(uuid7()),
        resource=resource,
        resource_key=resource.key,
        user=cast("User", caller.user),
        **columns,
    )


def open_thread(caller: MemoryCaller, key: str, resource: str, **columns: Any) -> Thread:
    """Return the thread with this key, for a run. The first call creates it for its resource.

    Raise Forbidden if the thread belongs to another resource than the named one. One user may serve many persons.
    Raise Conflict while the data of its resource is deleted.
    """
    thread = find_thread(caller, key, resource)
    if thread is None:
        target = get_or_create_resource(caller, caller.resource_to_write(resource))
        try:
            with transaction.atomic():
                return create_thread(caller, target, key, **columns)
        except IntegrityError:  # a concurrent request was first
            thread = Thread.objects.get(realm=caller.realm, key=key)
    # Not for a participant: the thread is in the realm of somebody else, with a resource of that realm.
    if thread.realm == caller.realm and thread.resource_key != caller.resource_to_write(resource):
        raise other_resource(key)
    # This also locks the row until the transaction ends: the start of a run relies on it.
    is_forgotten = Exists(Resource.objects.filter(pk=OuterRef("resource"), forgetting_since__isnull=False))
    if Thread.objects.filter(~is_forgotten, pk=thread.pk).update(updated_at=timezone.now()):
        return thread
    reject_forgotten(Resource.objects.filter(threads=thread.pk).first())
    return open_thread(caller, key, resource, **columns)  # it was deleted meanwhile


def create_named_thread(caller: MemoryCaller, key: str, resource: str, **columns: Any) -> Thread:
    """Create a thread, or return the one that the same request created before.

    Raise Conflict if the thread exists for another resource.
    """
    target = get_or_create_resource(caller, resource)
    try:
        with transaction.atomic():
            return create_thread(caller, target, key, **columns)
    except IntegrityError:
        thread = Thread.objects.get(realm=caller.realm, key=key)
    if thread.resource_key != resource:
        raise Conflict(f"Thread with id {key} already exists for another resource", "thread_exists")
    return thread


def open_child_thread(parent: Thread, agent_key: str, **columns: Any) -> Thread:
    """Return the thread of a sub-agent below another one, of the same resource. The first call creates it.

    No list has it. It is deleted with its parent. Raise Thread.DoesNotExist if the parent was deleted. The caller is
    in a transaction.
    """
    # The key is derived from the parent, so that of two calls at the same moment one finds the thread of the other.
    key = str(uuid5(CHILD_NAMESPACE, f"{parent.pk} {agent_key}"))
    thread = Thread.objects.filter(realm=parent.realm, key=key).first()
    if thread is None:
        # A transfer takes along what is below the parent. It waits for this lock, or has moved the parent already.
        parent = Thread.objects.select_for_update(of=("self",)).get(pk=parent.pk)
        origin = {name: getattr(parent, name) for name in ("resource_id", "resource_key", "user_id", "experiment_id")}
        thread, _ = Thread.objects.get_or_create(
            realm=parent.realm, key=key, defaults={"parent": parent, "agent_key": agent_key, **origin, **columns}
        )
    Thread.objects.filter(pk=thread.pk).update(updated_at=timezone.now())
    return thread


def note_use_of_resources(thread_ids: Collection[int]) -> None:
    """Note that the resources of threads were used until now: the clean-up keeps their memory as long as a thread."""
    Resource.objects.filter(threads__in=thread_ids).update(updated_at=timezone.now())


def transfer_thread(caller: MemoryCaller, thread: Thread, resource: str) -> Thread:
    """Give a thread with all its messages to another resource of the realm of the caller."""
    return move_thread(thread, get_or_create_resource(caller, resource))


def move_thread(thread: Thread, target: Resource) -> Thread:
    """Give a thread with all its messages, and the threads of sub-agents below it, to a resource of its realm.

    Raise Conflict while the data of its present resource is deleted.
    """
    with transaction.atomic():
        lock_threads([thread.pk])  # before the tree is read: a sub-agent may open a thread below it
        moved = [*lock_threads(tree_of([thread.pk]))]
        # The job that deletes all data of the old resource would no longer find the thread.
        reject_forgotten(Resource.objects.filter(threads=thread.pk).first())
        # Before the move: the old resource may have no other thread, and the next clean-up would delete its memory.
        note_use_of_resources(moved)
        Thread.objects.filter(pk__in=moved).update(resource=target, resource_key=target.key, updated_at=timezone.now())
        Vector.objects.filter(thread__in=moved).update(resource=target)
    thread.refresh_from_db()
    return thread
