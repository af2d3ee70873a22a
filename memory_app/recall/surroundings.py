"""The messages around others, as the API shows them. The number of queries does not depend on that of the messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from memory_app.models import Message

FIRST_NUMBER, LAST_NUMBER = 0, 2**31 - 1  # of the column


class Surroundings(NamedTuple):
    """The messages before and after another one, oldest first."""

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
    """Return at most so many messages before and after each row, by its primary key."""
    if not rows or not (before or after):
        return {row.pk: Surroundings() for row in rows}
    condition = Q()
    for thread_id, first, last in bounds_of(rows, before, after):
        condition |= Q(thread=thread_id, number__range=(first, last))
    heads = defaultdict[int, list[Message]](list)
    for head in Message.objects.filter(condition, head_number=F("number")).order_by("number"):
        heads[head.thread_id].append(head)
    return {row.pk: surroundings_among(heads[row.thread_id], row, before, after) for row in rows}


def bounds_of(rows: Sequence[Message], before: int, after: int) -> list[tuple[int, int, int]]:
    """Return for each row its thread and the numbers of the first and the last message around it."""
    heads = Message.objects.filter(thread=OuterRef("thread"), head_number=F("number")).order_by("number")
    earlier = heads.filter(number__lt=Coalesce(OuterRef("head_number"), OuterRef("number"))).order_by("-number")
    later = heads.filter(number__gt=OuterRef("number"))
    first = Subquery(earlier.values("number")[before - 1 : before]) if before else F("number")
    last = Subquery(later.values("number")[after - 1 : after]) if after else F("number")
    near = Message.objects.filter(pk__in=[row.pk for row in rows]).order_by()
    return [*near.values_list("thread_id", Coalesce(first, Value(FIRST_NUMBER)), Coalesce(last, Value(LAST_NUMBER)))]


def surroundings_among(heads: Sequence[Message], row: Message, before: int, after: int) -> Surroundings:
    """Return the messages around a row among those of its thread, of which none is missing in between."""
    start = bisect_left(heads, head_number_of(row), key=lambda head: head.number)
    end = bisect_right(heads, row.number, key=lambda head: head.number)
    return Surroundings(heads[max(0, start - before) : start], heads[end : end + after])
