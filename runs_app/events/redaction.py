"""Redaction of events for readers who may only see the question and the answer of a run."""

from __future__ import annotations

from runs_app.events.stream_chunks import SUSPENDED_TYPE, StreamChunk

REDACTED_ERROR = "The run failed. Ask a member of the team for the reason."
# The text of the answer, with the start of the run and its end or wait, without which a page would call a waiting run
# done. The other chunks show how the agent works.
ANSWER_TYPES = (
    "start",
    "text-start",
    "text-delta",
    "text-end",
    "step-discarded",
    "finish",
    "error",
    "abort",
    SUSPENDED_TYPE,
)


def redact_chunk(chunk: StreamChunk) -> StreamChunk | None:
    """Return a chunk without the model, warnings and reasons, or None if nothing remains."""
    if chunk["type"] not in ANSWER_TYPES:
        return None
    payload = chunk["payload"]
    if "warnings" in payload:
        payload = {**payload, "warnings": []}
    if "metadata" in payload:
        payload = {**payload, "metadata": {}}
    if "error" in payload:
        payload = {**payload, "error": {"name": "Error", "message": REDACTED_ERROR}}
    return {**chunk, "payload": payload}
