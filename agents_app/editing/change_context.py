"""Who makes a change, from where and why: a context around a save, instead of arguments through every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import models
from django.utils import timezone


class Source(models.TextChoices):
    """The door that a change came through."""

    CODE = "code", "Code"
    PAGE = "page", "Page"
    API = "api", "API"
    ADMIN = "admin", "Admin"
    IMPORT = "import", "Import"
    RESTORE = "restore", "Restore"
    TASK = "task", "Task"


def no_actor() -> Any:
    return None


@dataclass(frozen=True)
class Change:
    """What a version or an activation says about how it came to be.

    `publish` is None where nobody said: then a save goes live unless a draft is ahead.
    """

    message: str = ""
    name: str = ""
    source: str = Source.CODE
    publish: bool | None = None
    read_actor: Callable[[], Any] = no_actor
    at: datetime | None = None

    @property
    def time(self) -> datetime:
        """When the change was made: now, unless a history is brought in from elsewhere."""
        return self.at or timezone.now()

    @property
    def actor(self) -> Any:
        """The signed-in user, read at the last moment because the API authenticates inside its views."""
        user = self.read_actor()
        return user if user is not None and user.is_authenticated else None


NO_CHANGE_CONTEXT = Change()
LONGEST = {"message": 500, "name": 100}

_current: ContextVar[Change] = ContextVar("change", default=NO_CHANGE_CONTEXT)


def current_change() -> Change:
    return _current.get()


@contextmanager
def change(*, actor: Any = None, **said: Any) -> Iterator[Change]:
    """Say who and why around a save; a nested block inherits what it leaves unsaid.

    with change(message="Imported from agents.json", source=Source.IMPORT):
        agent.save()
    """
    for word, most in LONGEST.items():
        if len(said.get(word, "")) > most:  # SQLite would keep it, PostgreSQL would not
            raise ValueError(f"The {word} of a change has at most {most} characters.")
    if actor is not None:
        said["read_actor"] = lambda: actor
    token = _current.set(replace(_current.get(), **said))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
