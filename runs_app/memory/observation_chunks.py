"""Chunks of a stream about observational memory, as the published protocol names them. They contain no texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils import timezone

from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from memory_app.models import Observation
from memory_app.observational.limits import ObservationLimits
from memory_app.observational.observation_log import ObservationActivation
from memory_app.observational.observations_for_run import OpenWindow
from runs_app.events.stream_chunks import StreamChunk, build_chunk

STATUS = "data-om-status"
ACTIVATION = "data-om-activation"


def status_chunk(window: OpenWindow, limits: ObservationLimits) -> StreamChunk:
    """Return the state of the window of a run before its first request."""
    reflection = window.log.reflection
    active = {
        "messages": {"tokens": window.raw_tokens, "threshold": limits.message_tokens},
        "observations": {"tokens": window.log.tokens, "threshold": limits.observation_tokens},
    }
    buffered = {
        "observations": buffered_state(window.log.buffered),
        "reflection": {
            "inputObservationTokens": sum(row.tokens for row in covered_by(reflection, window.log.active)),
            "observationTokens": reflection.tokens if reflection else 0,
            "status": "complete" if reflection else "idle",
        },
    }
    return build_chunk(
        STATUS,
        windows={"active": active, "buffered": buffered},
        stepNumber=1,
        generationCount=window.log.generation,
        **window.ids(),
    )


def buffered_state(rows: Sequence[Observation]) -> JSONObject:
    """Return the observations that wait until their threshold is reached."""
    tokens = sum(row.message_tokens for row in rows)
    return {
        "chunks": len(rows),
        "messageTokens": tokens,
        "projectedMessageRemoval": tokens,
        "observationTokens": sum(row.tokens for row in rows),
        "status": "complete" if rows else "idle",
    }


def covered_by(reflection: Observation | None, rows: Sequence[Observation]) -> list[Observation]:
    """Return the observations that a reflection condenses."""
    return [row for row in rows if reflection is not None and row.last <= reflection.last]


def activation_chunks(window: OpenWindow) -> Iterator[StreamChunk]:
    """Yield what was activated before the first request of a run."""
    for activation in window.activations:
        yield activation_chunk(activation, window)


def activation_chunk(activation: ObservationActivation, window: OpenWindow) -> StreamChunk:
    return build_chunk(
        ACTIVATION,
        cycleId=f"{activation.rows[0].pk}-activation",
        operationType="reflection" if activation.is_reflection else "observation",
        activatedAt=format_timestamp(timezone.now()),
        chunksActivated=len(activation.rows),
        tokensActivated=sum(row.message_tokens for row in activation.rows),
        observationTokens=window.log.tokens,
        messagesActivated=sum(row.last - row.first + 1 for row in activation.rows),
        generationCount=window.log.generation,
        triggeredBy="threshold",
        **window.ids(),
    )


def observation_chunk(outcome: str, tokens: int, **fields: Any) -> StreamChunk:
    """Return the start or the end of observing by the run itself. `outcome` is start, end or failed."""
    time = {"start": "startedAt", "end": "completedAt", "failed": "failedAt"}[outcome]
    count = {"start": "tokensToObserve", "end": "tokensObserved", "failed": "tokensAttempted"}[outcome]
    fields |= {time: format_timestamp(timezone.now()), count: tokens}
    return build_chunk(f"data-om-observation-{outcome}", operationType="observation", **fields)
