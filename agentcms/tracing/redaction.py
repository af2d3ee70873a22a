"""Removal of texts from spans before they leave the process.

Imports OpenTelemetry, which is heavy. Import this module only while tracing is on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from opentelemetry.context import create_key
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Status
from opentelemetry.util.types import AttributeValue

CONTENT_KEY = create_key("agentcms-trace-content")  # in the context of spans that may contain texts
CONTENT_ATTRIBUTE = "agentcms.content"

# A list of what is allowed: a new release of a library may add attributes, and tools may add spans of their own.
ALLOWED_ATTRIBUTES = re.compile(
    r"agentcms\.[a-z_.]+|error\.type|exception\.type|http\.(request\.method|response\.status_code|route)|url\.scheme"
    r"|gen_ai\.(operation\.name|system|provider\.name|conversation\.id|output\.type|token\.type)"
    r"|gen_ai\.agent\.(name|call\.id)|gen_ai\.tool\.(name|call\.id)"
    r"|gen_ai\.request\.(model|max_tokens|temperature|top_p|top_k|seed|presence_penalty|frequency_penalty)"
    r"|gen_ai\.response\.(model|id|finish_reasons)|gen_ai\.client\.operation\.time_to_first_chunk"
    r"|gen_ai\.(aggregated_)?usage\.[a-z_.]+|operation\.cost|model_name|agent_name|server\.(address|port)"
    r"|pydantic_ai\.cache\.(hit_ratio|established_tokens|collapsed|missed_tokens|collapse_reason|not_enabled)"
    r"|pydantic_ai\.(tool|output)\.retry\.(cause|attempt|max_retries)|pydantic_ai\.tool\.failure_stage"
).fullmatch


class RedactingExporter(SpanExporter):
    """An exporter that passes spans on, without texts unless their context allowed them."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([redact_span(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def redact_span(span: ReadableSpan) -> ReadableSpan:
    """Return a span with the allowed attributes only, or the span itself if it may contain texts."""
    if (span.attributes or {}).get(CONTENT_ATTRIBUTE):
        return span
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=allowed_attributes(span.attributes),
        events=[redact_event(event) for event in span.events],
        links=[Link(link.context) for link in span.links],
        kind=span.kind,
        status=Status(span.status.status_code),  # without the message of an error, which may quote a prompt
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def redact_event(event: Event) -> Event:
    return Event(event.name, allowed_attributes(event.attributes), event.timestamp)


def allowed_attributes(attributes: Mapping[str, AttributeValue] | None) -> dict[str, AttributeValue]:
    return {name: value for name, value in (attributes or {}).items() if ALLOWED_ATTRIBUTES(name)}
