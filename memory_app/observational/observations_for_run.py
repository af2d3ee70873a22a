"""The observations that a run is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import transaction

from agentcms.wire.json_types import JSONObject
from memory_app.history.token_estimate import count_tokens
from memory_app.models import Observation, Thread
from memory_app.observational.limits import ObservationLimits, newest_lines
from memory_app.observational.observation_log import (
    ActivatedLog,
    ObservationActivation,
    ObservationLog,
    activate_due,
    is_due,
    load_log,
    tokens_after,
)


class ObservedWindow(NamedTuple):
    """The observations of a run: their text, and the last message that they cover."""

    text: str = ""
    last: int = 0


@dataclass(frozen=True)
class OpenWindow:
    """The observations of a thread at the beginning of a run."""

    thread_id: int
    thread_key: str
    log: ObservationLog
    raw_tokens: int
    activations: Sequence[ObservationActivation]
    text: str
    has_left_out: bool

    def ids(self) -> dict[str, str]:
        """Return the IDs of the thread and of its record under wire names."""
        return {"threadId": self.thread_key, "recordId": record_id(self.thread_key, self.log.generation)}

    def stored_form(self) -> JSONObject:
        """Return what the run stores."""
        return {
            "ids": [row.pk for row in self.log.active],
            "generation": self.log.generation,
            "last": self.log.active_until,
            "tokens": count_tokens(self.text),
            "messageTokens": self.raw_tokens,
        }


def open_window(thread_id: int, limits: ObservationLimits) -> OpenWindow:
    """Return the observations that a run is given. What is due becomes active before."""
    log = load_log(thread_id)
    state = ActivatedLog(log, tokens_after(thread_id, log.active_until))
    # Most runs find nothing due, so look before locking.
    if is_due(log, state.raw_tokens, limits):
        with transaction.atomic():
            thread = Thread.objects.select_for_update(of=("self",)).filter(pk=thread_id).first()
            state = activate_due(thread, limits) if thread is not None else state
    whole = join_observations(state.log.active)
    text = newest_lines(whole, limits.log_tokens)
    key = Thread.objects.values_list("key", flat=True).filter(pk=thread_id).first() or ""
    return OpenWindow(thread_id, key, state.log, state.raw_tokens, state.activations, text, text != whole)


def record_id(thread_key: str, generation: int) -> str:
    """Return the ID of the observations of a generation in the API."""
    return f"{thread_key}:{generation}"


def join_observations(rows: Sequence[Observation]) -> str:
    return "\n".join(row.text for row in rows)


def reload_text(ids: Sequence[int], limits: ObservationLimits) -> str:
    """Return the observations that a run was given before. Those of deleted messages are missing."""
    rows = Observation.objects.filter(pk__in=ids).order_by("first")
    return newest_lines(join_observations([*rows]), limits.log_tokens)
