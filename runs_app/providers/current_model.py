"""A model that asks its provider as it is configured at each request.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from agentcms.wire.json_types import JSONMapping
from runs_app.engine.thread_pools import run_db
from runs_app.providers.cached_providers import CODE_DIALECT, DEMO_DIALECT, Provider, get_cached_table
from runs_app.providers.models import build_model, get_model_provider

Connection = tuple[str, str, str]


class CurrentModel(WrapperModel):
    """Model wrapper for the steps of a run, during which a key may be revoked, or a provider moved or disabled."""

    def __init__(self, choice: JSONMapping, wrapped: Model, connection: Connection) -> None:
        super().__init__(wrapped)
        self.choice = choice
        self.connection = connection

    async def find_current(self) -> Model:
        """Return the model of the provider as it is now. Raise AgentBuildError if it is no longer available."""
        # A run begins with this table. Another thread for its first step would take 2 % of its CPU.
        table = get_cached_table()
        provider = table.find(str(self.choice["provider"])) if table is not None else None
        if provider is not None and provider.is_available and connection_of(provider) == self.connection:
            return self.wrapped
        return await run_db(self.read_current)

    def read_current(self) -> Model:
        is_same = connection_of(get_model_provider(self.choice)) == self.connection
        return self.wrapped if is_same else build_model(self.choice)

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        model = await self.find_current()
        return await model.request(*args, **kwargs)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        model = await self.find_current()
        arguments = (messages, model_settings, model_request_parameters, run_context)
        async with model.request_stream(*arguments) as stream:
            yield stream


def connection_of(provider: Provider) -> Connection:
    """Return what decides where a request goes."""
    return provider.dialect, provider.base_url, provider.secret


def current_model(choice: JSONMapping) -> Model:
    """Build the model that an agent names, which follows its provider. Raise AgentBuildError."""
    # Read before the model is built: of a provider that changes in between, the next request then sees the change.
    provider = get_model_provider(choice)
    model = build_model(choice)
    if provider.dialect in (DEMO_DIALECT, CODE_DIALECT):
        return model
    return CurrentModel(choice, model, connection_of(provider))
