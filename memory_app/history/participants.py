"""The members of a team who take part in a thread of somebody else."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import CharField, Exists, OuterRef, QuerySet, Value
from django.db.models.functions import Cast, Coalesce, Concat

from memory_app.history.threads import thread_not_found
from memory_app.models import Participant, Thread

MAX_PARTICIPANT_NAME = 150
MAX_FUNCTIONAL_ROLE = 100


def possible_participants(thread: Thread) -> QuerySet[User]:
    """Return the active members of the team of the thread's agent. A thread without such an agent has none."""
    if thread.agent is None:
        return User.objects.none()
    return User.objects.filter(memberships__owner_id=thread.agent.owner_id, is_active=True).order_by("username")


def add_participant(thread: Thread, user: User, name: str, functional_role: str) -> tuple[Participant, bool]:
    """Add a member to a thread, and return whether it is new. One who takes part already gets the name and the role.

    A blank name is the username, and blank texts change nothing of a member who takes part. Raise NotFound if the
    thread was deleted meanwhile.
    """
    texts = {"name": name, "functional_role": functional_role}
    given = {column: text for column, text in texts.items() if text}
    with transaction.atomic():
        # Locked, or the row could refer to a thread that is deleted at the same moment.
        locked = Thread.objects.select_for_update(of=("self",)).filter(pk=thread.pk).first()
        if locked is None:
            raise thread_not_found(thread.key)
        return Participant.objects.update_or_create(
            thread=locked, user=user, defaults=given, create_defaults={**texts, "name": name or user.get_username()}
        )


def has_other_participants(thread_id: int | None) -> bool:
    """Return whether others than its user take part in a conversation.

    The thread of a sub-agent belongs to the conversation above it. The model of a shared conversation knows only the
    conversation: what it knows else of the resource, it could tell to participants, who may not read it.
    """
    # Users take part in their own conversations to have a name and a role.
    participants = Participant.objects.annotate(own_realm=Concat(Value("u"), Cast("user_id", CharField())))
    others = participants.filter(thread=OuterRef("pk")).exclude(own_realm=Coalesce(OuterRef("realm"), Value("")))
    while thread_id is not None:
        rows = Thread.objects.filter(pk=thread_id).values_list(Exists(others), "parent")
        has_others, thread_id = rows.first() or (False, None)
        if has_others:
            return True
    return False
