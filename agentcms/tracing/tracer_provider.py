"""The tracer provider of this process.

Imports OpenTelemetry, which is heavy. Import this module only while tracing is on.
"""

from __future__ import annotations

import atexit
import os
import threading
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.conf import settings
from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_value, set_value
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.trace import Link, Span, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from agentcms.tracing.exporting import BoundedProcessor, build_exporter
from agentcms.tracing.redaction import CONTENT_KEY

SERVICE_NAME = "agentcms"
SCOPE = "agentcms"
LENGTH_VARIABLE = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
# Characters of an attribute, unless the standard variable sets another limit. With texts, a span may have a whole
# conversation, and thousands of spans wait while the collector is away.
MAX_VALUE_LENGTH = 32_768

_propagator = TraceContextTextMapPropagator()
_lock = threading.Lock()
_provider: TracerProvider | None = None
_processor: BoundedProcessor | None = None
_pid = 0


def get_tracer_provider() -> TracerProvider:
    """Return the provider of this process. The first call creates it, so that a fork has one of its own."""
    global _provider, _processor, _pid
    with _lock:
        if _provider is None or _pid != os.getpid():
            # The SDK reads the standard variables: the name of the service, the sampler and the limits.
            resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or SERVICE_NAME})
            # `stop_provider` stops it: it waits for a second at most.
            limits = SpanLimits(max_attribute_length=None if os.environ.get(LENGTH_VARIABLE) else MAX_VALUE_LENGTH)
            _provider = TracerProvider(resource=resource, span_limits=limits, shutdown_on_exit=False)
            _processor = BoundedProcessor(build_exporter())
            _provider.add_span_processor(_processor)
            _pid = os.getpid()
            atexit.register(stop_provider)
        return _provider


def stop_provider() -> None:
    """Export the spans that wait, and forget the provider."""
    global _provider, _processor
    with _lock:
        processor, _provider, _processor = _processor, None, None
    # A fork inherits the processor with the spans of its parent, which exports them itself.
    if processor is not None and _pid == os.getpid():
        processor.shutdown()


def flush() -> None:
    """Export all spans that have ended."""
    if _processor is not None:
        _processor.force_flush()


def get_tracer() -> trace.Tracer:
    return get_tracer_provider().get_tracer(SCOPE)


def inject_traceparent() -> str:
    """Return the `traceparent` of the current span, or a blank text."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get("traceparent", "")


def context_of(traceparent: str) -> Context:
    """Return a context whose current span has this `traceparent`. It is empty if the text is invalid."""
    return _propagator.extract({"traceparent": traceparent}, context=Context())


def context_allows_content() -> bool:
    """Return whether spans of the current context may contain texts."""
    return get_value(CONTENT_KEY) is True


@contextmanager
def open_span(
    name: str, attributes: Mapping[str, AttributeValue], traceparent: str, link: str, with_content: bool | None
) -> Iterator[Span]:
    """Run a block in a span, as `spans.span` describes."""
    parent: Context | None = context_of(traceparent) if traceparent else None
    links = [Link(trace.get_current_span(context_of(link)).get_span_context())] if link else None
    if link:
        parent = Context()
    content = context_allows_content() if with_content is None else with_content and settings.TRACE_CONTENT
    parent = set_value(CONTENT_KEY, content, parent)
    opened = get_tracer().start_span(name, context=parent, attributes=attributes, links=links)
    token = attach(trace.set_span_in_context(opened, parent))
    try:
        yield opened
    except BaseException as error:
        opened.set_attribute("error.type", type(error).__qualname__)
        if not isinstance(error, CancelledError):  # a user cancelled the run, or this process stops
            opened.set_status(StatusCode.ERROR)
        raise
    finally:
        detach(token)
        opened.end()
