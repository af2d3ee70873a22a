"""The messages around others, as the API shows them. The number of queries does not depend on that of the messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from memory_app.models import Message

FIRST_NUMBER, END_NUMBER = 0, 2**31 - 1  # of the column


class Surroundings(NamedTuple):
    """The messages before and after another one, oldest first: the first row of each, and all that have a text."""

    before: Sequence[Message] = ()
    after: Sequence[Message] = ()


def head_number_of(row: Message) -> int:
    """Return the number of the first row of a message that the API shows."""
    return row.head_number or row.number


def load_heads(rows: Sequence[Message]) -> dict[int, Message]:
    """Return the first row of the message to which each row belongs, by the primary key of the row."""
    places = {(row.thread_id, head_number_of(row)) for row in rows if head_number_of(row) != row.number}
    condition = Q()
    for thread_id, number in places:
        condition |= Q(thread=thread_id, number=number)
    heads = {(head.thread_id, head.number): head for head in Message.objects.filter(condition)} if places else {}
    return {row.pk: heads.get((row.thread_id, head_number_of(row)), row) for row in rows}


def load_surroundings(rows: Sequence[Message], before: int, after: int) -> dict[int, Surroundings]:
    """Return at most this many messages before and after each row, by its primary key."""
    if not rows or not (before or after):
        return {row.pk: Surroundings() for row in rows}
    near = Q()
    for thread_id, first, end in bounds_of(rows, before, after):
        near |= Q(thread=thread_id, number__gte=first, number__lt=end)
    # An answer that begins with a call of a tool has its text in a later row.
    is_shown = Q(head_number=F("number")) | ~Q(text="")
    nearby = Message.objects.filter(near, is_shown, was_processed()).order_by("number")
    messages = defaultdict[int, dict[int, list[Message]]](lambda: defaultdict(list))
    for row in nearby:
        messages[row.thread_id][head_number_of(row)].append(row)
    return {row.pk: surroundings_among(messages[row.thread_id], row, before, after) for row in rows}


def was_processed() -> Q:
    """Return the condition of messages that input processors have seen.

    A signal that waits is given to a run later. One whose run failed may not have reached the input processors.
    """
    answers = Message.objects.filter(thread=OuterRef("thread"), number__gt=OuterRef("number"))
    return ~Q(role=Message.Role.SIGNAL) | Q(Exists(answers.filter(run_id=OuterRef("seen_by"))))


def bounds_of(rows: Sequence[Message], before: int, after: int) -> list[tuple[int, int, int]]:
    """Return for each row its thread, the number of the first row around it, and the one after the last."""
    heads = Message.objects.filter(thread=OuterRef("thread"), head_number=F("number")).order_by("number")
    earlier = heads.filter(number__lt=Coalesce(OuterRef("head_number"), OuterRef("number"))).order_by("-number")
    later = heads.filter(number__gt=OuterRef("number"))
    first = Subquery(earlier.values("number")[before - 1 : before]) if before else F("number")
    end = Subquery(later.values("number")[after : after + 1]) if after else F("number")
    near = Message.objects.filter(pk__in=[row.pk for row in rows]).order_by()
    return [*near.values_list("thread_id", Coalesce(first, Value(FIRST_NUMBER)), Coalesce(end, Value(END_NUMBER)))]


def surroundings_among(
    messages: Mapping[int, Sequence[Message]], row: Message, before: int, after: int
) -> Surroundings:
    """Return the messages around a row among those of its thread by the number of their first row, in order."""
    heads, own = [*messages], head_number_of(row)
    start, end = bisect_left(heads, own), bisect_right(heads, own)
    return Surroundings(
        [item for head in heads[max(0, start - before) : start] for item in messages[head]],
        [item for head in heads[end : end + after] for item in messages[head]],
    )
