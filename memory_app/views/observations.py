"""The observations beside a thread on its page."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest

from agentcms.web.template_context import TemplateContext
from memory_app.models import Observation, Thread
from memory_app.observational.limits import observation_limits, observational_options_of_agent
from memory_app.observational.observation_log import ObservationLog, load_log, tokens_after
from memory_app.observational.records import work_in_progress
from memory_app.recall.surroundings import head_number_of
from memory_app.views.links import message_url


class ObservationEntry(NamedTuple):
    """An observation with its state, and a link to the last message that it covers."""

    row: Observation
    state: str
    url: str


class WindowGauge(NamedTuple):
    """A number of tokens and the threshold at which something happens."""

    label: str
    tokens: int
    threshold: int


def observed_context(request: HttpRequest, thread: Thread) -> TemplateContext:
    """Return the context of the observations of a thread, or nothing if it has none and its agent makes none."""
    options, log = observational_options_of_agent(thread.agent), load_log(thread.pk)
    entries = [*log_entries(request, thread, log)]
    if options is None and not entries:
        return {"observed": None}
    gauges: list[WindowGauge] = []
    if options is not None:
        limits = observation_limits(options)
        raw_tokens = tokens_after(thread.pk, log.active_until)
        gauges = [
            WindowGauge("Messages", raw_tokens, limits.message_tokens),
            WindowGauge("Observations", log.tokens, limits.observation_tokens),
        ]
    return {"observed": {"entries": entries, "gauges": gauges, **work_in_progress(thread, log, options)}}


def log_entries(request: HttpRequest, thread: Thread, log: ObservationLog) -> list[ObservationEntry]:
    """Return the observations, the latest first."""
    waiting = [log.reflection] if log.reflection is not None else []
    rows = [
        *((row, "waiting") for row in waiting),
        *((row, "waiting") for row in reversed(log.buffered)),
        *((row, "active") for row in reversed(log.active)),
    ]
    # The last row that is covered may be one of several of an answer, which the page shows as one message.
    numbers = [row.last for row, _ in rows]
    covered = thread.messages.filter(number__in=numbers).only("number", "head_number") if rows else ()
    heads = {message.number: head_number_of(message) for message in covered}
    return [
        ObservationEntry(row, state, message_url(request, thread, heads.get(row.last, row.last)))
        for row, state in rows
    ]
