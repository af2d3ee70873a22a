"""The context of a change: its author, source and reason. It replaces arguments through every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack

from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

MAX_LENGTHS = {"message": 500, "name": 100}


class Source(models.TextChoices):
    """The interface through which a change is made."""

    CODE = "code", "Code"
    PAGE = "page", "Editor"
    API = "api", "API"
    ADMIN = "admin", "Admin"
    IMPORT = "import", "Import"
    RESTORE = "restore", "Restore"
    TASK = "task", "Task"


def no_actor() -> None:
    return None


@dataclass(frozen=True)
class Change:
    """The data that a change gives to its versions and activations.

    With `publish` unset, a save goes live unless a draft is ahead. A save that does not ask to publish, or only by
    default, stays a draft where a gate refuses it. `bypass_reason` is why a manager bypasses a gate.
    """

    message: str = ""
    name: str = ""
    source: str = Source.CODE
    publish: bool | None = None
    publishes_by_default: bool = False
    bypass_reason: str = ""
    read_actor: Callable[[], User | AnonymousUser | None] = no_actor
    at: datetime | None = None

    @property
    def may_stay_draft(self) -> bool:
        """True if the save does not ask to publish itself. A reason to bypass a gate asks to publish."""
        return not self.bypass_reason and (self.publish is None or self.publishes_by_default)

    @property
    def time(self) -> datetime:
        """The time of the change: now, unless a history comes from elsewhere."""
        return self.at or timezone.now()

    @property
    def actor(self) -> User | None:
        """The signed-in user. Read as late as possible: the API authenticates inside its views."""
        user = self.read_actor()
        return user if user is not None and user.is_authenticated else None


class ChangeValues(TypedDict, total=False):
    """The values that a block may set; the others are inherited."""

    message: str
    name: str
    source: str
    publish: bool | None
    publishes_by_default: bool
    bypass_reason: str
    read_actor: Callable[[], User | AnonymousUser | None]
    at: datetime | None


NO_CHANGE_CONTEXT = Change()

# Not a thread-local: several coroutines share a thread.
_current: ContextVar[Change] = ContextVar("change", default=NO_CHANGE_CONTEXT)


def current_change() -> Change:
    """Return the innermost change context, or NO_CHANGE_CONTEXT."""
    return _current.get()


@contextmanager
def change(*, actor: User | AnonymousUser | None = None, **values: Unpack[ChangeValues]) -> Iterator[Change]:
    """Open a change context around saves. A nested block inherits the values that it does not set.

    with change(message="Imported from agents.json", source=Source.IMPORT):
        agent.save()

    Raise ValueError for a message or a name that is too long.
    """
    for name, text in (("message", values.get("message", "")), ("name", values.get("name", ""))):
        if len(text) > MAX_LENGTHS[name]:  # SQLite would store it, PostgreSQL would not
            raise ValueError(f"The {name} of a change has at most {MAX_LENGTHS[name]} characters.")
    if actor is not None:
        values["read_actor"] = lambda: actor
    token = _current.set(replace(_current.get(), **values))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
