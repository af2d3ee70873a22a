"""Instrumentation of pydantic-ai.

Imports pydantic-ai, which is heavy. Import this module only while tracing is on.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings

from agentcms.tracing import tracer_provider


class SettingsWithoutMessages(InstrumentationSettings):
    """Settings for spans that may contain no text: they build no messages, which the exporter would only remove.

    Otherwise each request would convert the whole conversation once more.
    """

    def messages_to_otel_messages(self, *args: Any, **kwargs: Any) -> list[Any]:
        return []

    def handle_messages(self, *args: Any, **kwargs: Any) -> None:
        pass


class RunInstrumentation(Instrumentation):
    """The capability that makes the spans of a run. The context of the run says whether they may contain texts.

    It is built into the agent, which serves many runs: to add a capability to a single run makes pydantic-ai combine
    and sort all of them again.
    """

    async def for_run(self, ctx: RunContext[Any]) -> Instrumentation:
        instrumentation = await super().for_run(ctx)
        instrumentation.settings = instrumentation_settings(with_content=tracer_provider.context_allows_content())
        return instrumentation


def instrumentation_settings(*, with_content: bool) -> InstrumentationSettings:
    """Return the settings of the current tracer provider, for spans with or without texts."""
    return _settings(tracer_provider.get_tracer_provider(), with_content)


@cache
def _settings(provider: Any, with_content: bool) -> InstrumentationSettings:
    return (InstrumentationSettings if with_content else SettingsWithoutMessages)(
        tracer_provider=provider,
        include_content=with_content,
        include_binary_content=False,
        include_model_request_parameters=False,
    )
