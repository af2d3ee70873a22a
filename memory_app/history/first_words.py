"""The words with which a conversation began, by which people know one without a title."""

from __future__ import annotations

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left
from django.utils.text import Truncator

from memory_app.history.turn_markup import is_spoken_signal
from memory_app.models import Message

MAX_READ_LENGTH = 500  # characters of a message, which may be very long, of whose beginning the words are made


def first_user_text() -> Subquery:
    """Return the beginning of the first words of a user, also those of a signal, for a query of threads."""
    is_spoken = Q(role=Message.Role.USER) | is_spoken_signal()
    first = Message.objects.filter(is_spoken, thread=OuterRef("pk")).order_by("number")
    return Subquery(first.values(beginning=Left("text", MAX_READ_LENGTH))[:1])


def shortened_words(text: str, length: int) -> str:
    """Return a text in one line, with at most `length` characters."""
    return Truncator(" ".join(text.split())).chars(length)
