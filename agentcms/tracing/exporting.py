"""The export of spans, which never delays a run or a stop.

Imports OpenTelemetry, which is heavy. Import this module only while tracing is on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from opentelemetry.context import Context, get_value
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from agentcms.tracing.drop_signal import spans_dropped
from agentcms.tracing.redaction import CONTENT_ATTRIBUTE, CONTENT_KEY, RedactingExporter

EXPORT_TIMEOUT = 2.0  # seconds, unless a standard variable sets another limit
# Without a collector, the SDK itself would take eight seconds to shut down.
SHUTDOWN_TIMEOUT_MS = 1000  # milliseconds
TIMEOUT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")


def build_exporter() -> SpanExporter:
    """Return the exporter of the standard variables. It follows no redirect."""
    # The exporter reads the variables itself, but only if it gets no timeout.
    has_timeout = any(os.environ.get(name) for name in TIMEOUT_VARIABLES)
    return CountingExporter(RedactingExporter(OTLPSpanExporter(timeout=None if has_timeout else EXPORT_TIMEOUT)))


class CountingExporter(SpanExporter):
    """An exporter that counts the spans that the collector did not take."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is not SpanExportResult.SUCCESS:
                spans_dropped.send(sender=None, count=len(spans), reason="export_failed")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class BoundedProcessor(BatchSpanProcessor):
    """A queue of spans with a limit, which counts the spans that did not fit and stops within a second."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        # The exporter sees no context, so the span itself says whether it may contain texts.
        if get_value(CONTENT_KEY, parent_context) is True:
            span.set_attribute(CONTENT_ATTRIBUTE, True)

    def on_end(self, span: ReadableSpan) -> None:
        # The SDK only logs a span that does not fit, so its queue is looked at here.
        queue = self._batch_processor._queue
        if len(queue) == queue.maxlen and span.context is not None and span.context.trace_flags.sampled:
            spans_dropped.send(sender=None, count=1, reason="queue_full")
        super().on_end(span)

    def shutdown(self) -> None:
        self._batch_processor.shutdown(SHUTDOWN_TIMEOUT_MS)
        if waiting := len(self._batch_processor._queue):
            spans_dropped.send(sender=None, count=waiting, reason="stopped")
