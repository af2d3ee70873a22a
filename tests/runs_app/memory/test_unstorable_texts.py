"""Texts of models that no database stores: NUL characters, and halves of surrogate pairs."""

import asyncio

import pytest

from memory_app.models import Resource
from runs_app.memory.model_requests import request_answer
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

TEXTS = pytest.mark.parametrize(
    ("escaped", "stored"), [(r"a\u0000b", "a\N{REPLACEMENT CHARACTER}b"), (r"a\ud800b", "a?b")]
)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


def ask(text):
    body = {"messages": text, "memory": {"thread": "t", "resource": "alice"}}
    answer = Caller(api_key(member("editor"))).post("/api/agents/concierge/generate", body)
    assert answer.status_code == 200, answer.body


@pytest.mark.parametrize("working", [{"template": "# Person"}, {"schema": SCHEMA}], ids=["text", "object"])
def test_working_memory_has_marks_in_their_place(working):
    AgentFactory(id="concierge", model=DEMO, instructions="", memory={"options": {"workingMemory": working}})
    memory = r'{"name": "a\u0000b"}' if "schema" in working else r'"a\u0000b"'

    ask(f'updateWorkingMemory {{"memory": {memory}}}')

    assert "a\N{REPLACEMENT CHARACTER}b" in Resource.objects.get(key="alice").working_memory


@TEXTS
def test_titles_and_observations_have_marks_in_their_place(db, spy, escaped, stored):
    spy.answers["title"] = escaped.encode().decode("unicode_escape")

    answer = asyncio.run(request_answer({"provider": "spy", "name": "title"}, "Name it.", "Hello", 10))

    assert answer.text == stored
