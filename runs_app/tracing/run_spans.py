"""Spans of runs. Importing this module loads no part of OpenTelemetry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings

from agentcms.tracing import spans
from runs_app.engine.thread_pools import run_db
from runs_app.models import AgentRun, TraceRule

if TYPE_CHECKING:
    from opentelemetry.trace import Span
    from pydantic_ai.capabilities import AbstractCapability

    from runs_app.events.pending_runs import RunEnd


@asynccontextmanager
async def run_span(run: AgentRun) -> AsyncIterator[Span | None]:
    """Run a block in the span of a run.

    A run that waited for people begins a new trace, which refers to the first: it may continue days later.
    """
    if not spans.is_tracing():
        yield None
        return
    is_resumed = run.segment > 0
    with spans.span(
        "run",
        run_attributes(run),
        traceparent="" if is_resumed else run.traceparent,
        link=run.traceparent if is_resumed else "",
        with_content=await run_db(owner_allows_content, run.owner_id) if settings.TRACE_CONTENT else False,
    ) as span:
        yield span


def run_attributes(run: AgentRun) -> dict[str, str | int]:
    """Return what identifies a run in a trace. Its owner is hashed."""
    return {
        "agentcms.run.id": str(run.pk),
        "agentcms.agent.id": run.agent_key,
        "agentcms.version.number": run.version_number or 0,
        "agentcms.owner": spans.hash_owner(run.owner_id),
        "agentcms.segment": run.segment,
        **({"agentcms.experiment.id": str(run.experiment_id)} if run.experiment_id else {}),
    }


def record_status(span: Span | None, end: RunEnd) -> None:
    """Add the status of a run to its span: that of its end, or `queued` if another process continues it.

    The message of a failure may quote a prompt, so it is left out.
    """
    if span is None:
        return
    from opentelemetry.trace import StatusCode

    status = end.get("status", AgentRun.Status.QUEUED)
    span.set_attribute("agentcms.run.status", status)
    if status == AgentRun.Status.FAILED:
        span.set_status(StatusCode.ERROR)


def owner_allows_content(owner_id: str) -> bool:
    """Return whether the spans of an owner may contain texts."""
    return not TraceRule.objects.filter(owner_id=owner_id, allows_content=False).exists()


def instrumentation() -> Iterator[AbstractCapability[Any]]:
    """Yield the capability that makes the spans of an agent's runs, or nothing while tracing is off."""
    if spans.is_tracing():
        from runs_app.tracing.instrumentation import RunInstrumentation, instrumentation_settings

        # Without texts until a run begins: the agent may be built in a run that may have them, and serve others.
        yield RunInstrumentation(settings=instrumentation_settings(with_content=False))
