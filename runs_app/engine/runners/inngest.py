"""The runner over Inngest: an event for each run, for which Inngest calls this web server.

Imports inngest, an optional dependency. Only `get_runner` and the URLs with RUN_ENGINE=inngest import this module.
See https://www.inngest.com/docs/reference/python.
"""

from __future__ import annotations

import logging
from functools import cache
from uuid import UUID

import inngest
import inngest.django
from django.conf import settings
from django.urls import URLPattern

from agentcms.backends.circuit_breaker import CircuitBreaker
from runs_app.engine.engine import get_engine
from runs_app.engine.runners.messages import MessageRunner

APP_ID = "agentcms"
RUN_QUEUED_EVENT = "agentcms/run.queued"
SERVE_PATH = "inngest"
INNGEST_PAUSE = 5.0  # seconds without events after a failure
MAX_STEP_RETRIES = 4  # of a call of this server


class InngestRunner(MessageRunner):
    """A runner that sends an event of Inngest for each run. Inngest calls a web process, which executes the run."""

    service = "Inngest"

    def __init__(self) -> None:
        super().__init__()
        self.circuit = CircuitBreaker(INNGEST_PAUSE)

    @property
    def can_be_reached(self) -> bool:
        return True  # web processes execute the runs, so no worker has to be alive

    def send_message(self, run_id: UUID) -> None:
        event = inngest.Event(name=RUN_QUEUED_EVENT, data={"runId": str(run_id)})
        get_client().send_sync(event)  # it repeats an event for many seconds


@cache
def get_client() -> inngest.Inngest:
    """Return the client of Inngest. Outside production it needs no keys."""
    address = settings.INNGEST_BASE_URL or None
    return inngest.Inngest(
        app_id=APP_ID,
        api_base_url=address,
        event_api_base_url=address,
        event_key=settings.INNGEST_EVENT_KEY or None,
        signing_key=settings.INNGEST_SIGNING_KEY or None,
        is_production=not settings.DEBUG,
        logger=logging.getLogger("inngest"),
    )


def build_inngest_url() -> URLPattern:
    """Return the URL that Inngest calls. Only calls with the signature of INNGEST_SIGNING_KEY do anything."""
    client = get_client()

    @client.create_function(
        fn_id="perform-run", trigger=inngest.TriggerEvent(event=RUN_QUEUED_EVENT), retries=MAX_STEP_RETRIES
    )
    def perform_run(context: inngest.ContextSync) -> None:
        run_id = str(context.event.data["runId"])
        context.step.run("offer", lambda: get_engine().offer(UUID(run_id)))

    return inngest.django.serve(client, [perform_run], serve_path=SERVE_PATH, enable_unauthed_sync=False)
