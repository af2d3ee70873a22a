"""Settings of pydantic-ai's instrumentation.

Imports pydantic-ai, which is heavy. Import this module only while tracing is on.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.models.instrumented import InstrumentationSettings


class SettingsWithoutMessages(InstrumentationSettings):
    """Settings for spans that may contain no text: they build no messages, which the exporter would only remove.

    Otherwise each request would convert the whole conversation once more.
    """

    def messages_to_otel_messages(self, *args: Any, **kwargs: Any) -> list[Any]:
        return []

    def handle_messages(self, *args: Any, **kwargs: Any) -> None:
        pass
