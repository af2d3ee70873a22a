"""Spans of runs. Importing this module loads no part of OpenTelemetry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

from agentcms.tracing import spans
from runs_app.engine.thread_pools import run_db
from runs_app.models import AgentRun, TraceRule

if TYPE_CHECKING:
    from opentelemetry.trace import Span
    from pydantic_ai.capabilities import AbstractCapability


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
        with_content=await run_db(allows_content, run.owner_id) if settings.TRACE_CONTENT else False,
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


def record_status(span: Span | None, status: str) -> None:
    """Add the status of a run to its span. The message of a failure may quote a prompt, so it is left out."""
    if span is None:
        return
    from opentelemetry.trace import StatusCode

    span.set_attribute("agentcms.run.status", status)
    if status == AgentRun.Status.FAILED:
        span.set_status(StatusCode.ERROR)


def allows_content(owner_id: str) -> bool:
    """Return whether the spans of an owner may contain texts."""
    return not TraceRule.objects.filter(owner_id=owner_id, allows_content=False).exists()


def instrumentation() -> list[AbstractCapability[Any]]:
    """Return the capability that makes the spans of a run of pydantic-ai, or nothing while tracing is off.

    It belongs to one run. An agent that was built may serve others later.
    """
    if not spans.is_tracing():
        return []
    from pydantic_ai.capabilities import Instrumentation

    from agentcms.tracing import tracer_provider

    options = instrumentation_settings(tracer_provider.get_provider(), tracer_provider.allows_content())
    return [Instrumentation(settings=options)]


@cache
def instrumentation_settings(tracer_provider: Any, with_content: bool) -> Any:
    from pydantic_ai.models.instrumented import InstrumentationSettings

    from runs_app.tracing.instrumentation import SettingsWithoutMessages

    return (InstrumentationSettings if with_content else SettingsWithoutMessages)(
        tracer_provider=tracer_provider,
        include_content=with_content,
        include_binary_content=False,
        include_model_request_parameters=False,
    )
