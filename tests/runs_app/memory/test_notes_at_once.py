"""Two runs that change the working memory of a resource at the same time: no note is lost."""

import asyncio
import json

import pytest
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agents_app.registry import Entry, Kind, registry
from memory_app.models import Resource, WorkingRevision
from runs_app.providers.demo_model import user_prompts
from tests.api_client import Caller
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.usefixtures("idle_engine")

NAMES = ("Ann likes tea", "Bob likes coffee")
TEMPLATE, SCHEMA = {"template": "# Persons"}, {"schema": {"type": "object"}}


class NotingModel:
    """A model that notes its prompt. Its first call waits until both runs have read the memory."""

    def __init__(self, note):
        self.note = note  # (prompt, memory as the tool has returned it) → the argument of the tool
        self.prompts, self.results = set(), []

    async def stream(self, messages, info):
        (prompt,) = user_prompts(messages)
        results = [part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        self.results += results
        if results and results[-1]["success"]:
            yield "Noted."
            return
        self.prompts.add(prompt)
        while len(self.prompts) < len(NAMES):
            await asyncio.sleep(0.01)
        memory = self.note(prompt, results[-1]["memory"] if results else "")
        yield {0: DeltaToolCall("updateWorkingMemory", json.dumps({"memory": memory}))}


def run_both(model, working):
    entry = Entry(
        Kind.MODEL_PROVIDER,
        "noting",
        "Noting",
        names=("model",),
        target=lambda name, settings: FunctionModel(stream_function=model.stream),
    )
    registry.add(entry)
    memory = {"options": {"workingMemory": working}}
    AgentFactory(id="concierge", model={"provider": "noting", "name": "model"}, memory=memory)
    token = api_key(member("editor"))

    def ask(name):
        body = {"messages": name, "memory": {"thread": name.split()[0], "resource": "persons"}}
        return Caller(token).post("/api/agents/concierge/generate", body)

    answers = run_concurrently([lambda name=name: ask(name) for name in NAMES])
    assert [answer.status_code for answer in answers] == [200, 200], [answer.body for answer in answers]
    return Resource.objects.get(key="persons").working_memory


def test_the_second_of_two_texts_is_told_the_first_and_both_stay():
    model = NotingModel(lambda prompt, memory: f"{memory}\n{prompt}".strip())

    text = run_both(model, TEMPLATE)

    assert sorted(text.splitlines()) == sorted(NAMES)
    (moved,) = [result for result in model.results if not result["success"]]
    assert moved["memory"] in NAMES
    assert WorkingRevision.objects.count() == 2


def test_two_merges_are_both_in_the_object():
    model = NotingModel(lambda prompt, memory: {"persons": {prompt.split()[0]: prompt}})

    text = run_both(model, SCHEMA)

    assert json.loads(text) == {"persons": {name.split()[0]: name for name in NAMES}}
    assert model.results == [{"success": True}] * 2
