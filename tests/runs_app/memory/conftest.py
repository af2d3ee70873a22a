"""Fixtures of tests of memory in runs."""

from typing import NamedTuple

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from agents_app.registry import Entry, Kind, registry


class Request(NamedTuple):
    """A request that one of the models of the provider `spy` received."""

    model: str
    instructions: str
    prompt: str


class SpyModels:
    """The models of the provider `spy`: what they received, and the answers that they give by their names."""

    def __init__(self):
        self.requests, self.answers = [], {}

    def of(self, name):
        return [request for request in self.requests if request.model == name]

    def build(self, choice_or_name, settings):
        name = choice_or_name

        def receive(messages, info):
            prompts = [part.content for part in messages[-1].parts if isinstance(part, UserPromptPart)]
            self.requests.append(Request(name, info.instructions or "", str(prompts[-1]) if prompts else ""))
            answer = self.answers.get(name, "Noted.")
            return answer(self.of(name)) if callable(answer) else answer

        async def stream(messages, info):
            yield receive(messages, info)

        return FunctionModel(
            lambda messages, info: ModelResponse([TextPart(receive(messages, info))]), stream_function=stream
        )


@pytest.fixture
def spy():
    """Register the provider `spy` with models whose requests a test can read."""
    models = SpyModels()
    names = ("agent", "title", "observer", "reflector", "shared")
    registry.add(Entry(Kind.MODEL_PROVIDER, "spy", "Spy", names=names, target=models.build))
    return models
