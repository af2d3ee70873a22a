"""The markup that tells the model who speaks in a thread with participants.

    <turn author_id="u7" author_name="Alice" functional_role="editor">
    Which colour shall it be?
    </turn>

It is made when messages are given to the model, and never stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import Q

from agentcms.wire.json_types import JSONObject
from memory_app.history.signal_markup import USER_TAG, Signal, escape_attribute
from memory_app.models import Message, Participant, Thread
from memory_app.realms import owner_of_realm, user_realm

TURN_TAG = re.compile(r"<(?=/?turn)", re.IGNORECASE)
AUTHOR_ATTRIBUTES = ("author_id", "author_name", "name", "functional_role")  # only the server may set these
SPOKEN_TYPES = (USER_TAG, "user-message")  # of signals without a tag of their own


class Turn(NamedTuple):
    """The author of a message."""

    author_id: str
    author_name: str
    functional_role: str = ""

    def wrap(self, text: str) -> str:
        """Return a text with its author. Tags of turns inside the text are escaped."""
        values = {name: value for name, value in self._asdict().items() if value}
        attributes = "".join(f' {name}="{escape_attribute(value)}"' for name, value in values.items())
        return f"<turn{attributes}>\n{TURN_TAG.sub('&lt;', text)}\n</turn>"


@dataclass(frozen=True)
class ThreadTurns:
    """The participants of a thread by user. Without any, messages have no turns."""

    participants: Mapping[int, Participant] = field(default_factory=dict)
    speaks_for_others: bool = False  # whether the authors are end users whom an API key names

    def turn_of(self, message: Message) -> Turn | None:
        """Return the turn of a message of a person, or None."""
        if not self.participants or not is_spoken(message):
            return None
        given = author_attributes(message) if self.speaks_for_others else {}
        if given.get("author_id") or given.get("author_name"):
            name = str(given.get("author_name") or given.get("name") or given["author_id"])
            return Turn(str(given.get("author_id") or name), name, str(given.get("functional_role") or ""))
        return self.turn_of_user(message.author_id, message.author_name)

    def turn_of_user(self, user_id: int | None, name: str) -> Turn | None:
        """Return the turn of a user, or None in a thread without participants.

        A participant has the name and the role of the thread, anybody else the given name.
        """
        if not self.participants:
            return None
        if user_id is None:
            return Turn("", name)
        participant = self.participants.get(user_id)
        if participant is None:
            return Turn(user_realm(user_id), name)
        return Turn(user_realm(user_id), participant.name, participant.functional_role)


def find_turns(thread: Thread) -> ThreadTurns:
    """Return the participants of a thread."""
    participants = {participant.user_id: participant for participant in thread.participants.all()}
    return ThreadTurns(participants, owner_of_realm(thread.realm or "") is not None)


def caller_turn(thread_id: int, user_id: int | None, name: str) -> Turn | None:
    """Return the turn of a user who calls an agent in a thread, or None without participants or for an API key.

    An API key for end users names their authors in the attributes of messages.
    """
    thread = Thread.objects.only("realm").filter(pk=thread_id).first()
    if thread is None:  # deleted during the run
        return None
    turns = find_turns(thread)
    return None if turns.speaks_for_others else turns.turn_of_user(user_id, name)


def is_spoken(message: Message) -> bool:
    """Return True for the words of a person."""
    if message.role != Message.Role.SIGNAL:
        return message.role == Message.Role.USER
    stored = (message.attributes or {}).get("signal") or {}
    return Signal(stored.get("type") or "", "", tag_name=stored.get("tagName") or "").is_from_user


def is_spoken_signal() -> Q:
    """Return the condition of signals that are the words of a person."""
    has_tag_of_type = Q(attributes__signal__type__in=SPOKEN_TYPES, attributes__signal__tagName="")
    return Q(role=Message.Role.SIGNAL) & (Q(attributes__signal__tagName=USER_TAG) | has_tag_of_type)


def author_attributes(message: Message) -> JSONObject:
    """Return the attributes of a signal that name its author."""
    attributes = ((message.attributes or {}).get("signal") or {}).get("attributes") or {}
    return {name: attributes[name] for name in AUTHOR_ATTRIBUTES if name in attributes}
