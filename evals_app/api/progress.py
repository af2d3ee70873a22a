"""The API view that streams the progress of an experiment."""

from __future__ import annotations

import time
from collections.abc import Iterator

from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.request import Request

from agentcms.api.views import JSONView
from agentcms.db.connections import return_connection
from agentcms.db.outages import read_through_outage
from agentcms.wire.canonical import canonical
from evals_app.api.experiment_representation import wire_status
from evals_app.api.lookups import get_experiment
from evals_app.models import Experiment
from runs_app.api.stream_responses import EventStreamNegotiation, stream_head_response, stream_of_blocks
from runs_app.events.stream_access import StreamAccess
from runs_app.events.streams import DONE_BLOCK, HEARTBEAT, KEEP_ALIVE, ServerSentEvents, StreamSlot, stopping

PROGRESS_INTERVAL = 0.5  # seconds between two reads of the row
PROGRESS_COLUMNS = (
    "status",
    "total_items",
    "succeeded_count",
    "failed_count",
    "summary",
    "verdict",
    "stop_reason",
    "error",
)


class ProgressView(JSONView):
    """The progress of an experiment as server-sent events, until it ends."""

    content_negotiation_class = EventStreamNegotiation

    def get(self, request: Request, experiment_id: str) -> StreamingHttpResponse:
        experiment = get_experiment(request, experiment_id)
        return stream_of_blocks(ProgressStream(experiment, StreamSlot(request.user)))

    def head(self, request: Request, experiment_id: str) -> HttpResponse:
        # Not the stream itself: it would hold a thread until the experiment ends.
        get_experiment(request, experiment_id)
        return stream_head_response()


def progress_block(experiment: Experiment) -> bytes:
    """Return the progress of an experiment as an event."""
    summary = experiment.summary
    body = {
        "type": "finished" if experiment.is_finished else "progress",
        "experimentId": str(experiment.pk),
        "status": wire_status(experiment),
        "cancelled": experiment.status == Experiment.Status.CANCELLED,
        "totalItems": experiment.total_items,
        "succeededCount": experiment.succeeded_count,
        "failedCount": experiment.failed_count,
        "cost": summary.get("cost", 0),
        "tokens": summary.get("tokens", 0),
        "verdict": experiment.verdict or None,
        "stopReason": experiment.stop_reason or experiment.error or None,
    }
    return f"data: {canonical(body)}\n\n".encode()


class ProgressStream(ServerSentEvents):
    """An event for each change of the progress.

    The stream ends without `[DONE]` when the experiment was deleted, or its reader may no longer see it.
    """

    def __init__(self, experiment: Experiment, slot: StreamSlot) -> None:
        super().__init__(slot)
        self.experiment = experiment
        self.access = StreamAccess(
            slot.user, lambda: Experiment.objects.for_user(slot.user).filter(pk=experiment.pk).exists()
        )

    def generate_blocks(self) -> Iterator[bytes]:
        sent, sent_at = b"", 0.0
        while True:
            block = progress_block(self.experiment)
            if block != sent or time.monotonic() - sent_at >= HEARTBEAT:
                yield block if block != sent else KEEP_ALIVE
                sent, sent_at = block, time.monotonic()
            if self.experiment.is_finished or stopping.is_set():
                break
            return_connection()
            stopping.wait(PROGRESS_INTERVAL)
            if not read_through_outage(stopping, self.refresh):
                return
            if read_through_outage(stopping, self.access.has_ended):
                return
        if self.experiment.is_finished:
            yield DONE_BLOCK

    def refresh(self) -> bool:
        """Read the row again. Return False if it was deleted."""
        try:
            self.experiment.refresh_from_db(fields=PROGRESS_COLUMNS)
        except Experiment.DoesNotExist:
            return False
        return True
