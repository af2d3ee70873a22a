"""Memories that are registered in code."""

import pytest

from agents_app.registry import Entry, Kind, registry
from runs_app.memory.last_messages import LastMessages
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def calls():
    """Return the arguments of each call of the function of a memory."""
    calls = []

    def by_tier(context, options):
        calls.append((context, options))
        return LastMessages(max_messages=0 if context.get("tier") == "free" else 20)

    registry.add(Entry(Kind.MEMORY, "by-tier", "By tier", target=by_tier))
    AgentFactory(id="concierge", model=DEMO, instructions="", memory="by-tier")
    return calls


def ask(key, text, **body):
    memory = {"thread": "t", **body.pop("memory", {})}
    answer = Caller(key).post("/api/agents/concierge/generate", {"messages": text, "memory": memory, **body})
    assert answer.status_code == 200, answer.body
    return answer.body["text"]


def test_its_function_gets_the_context_and_the_options_of_each_run(calls):
    user = member("editor")
    free, paid = (api_key(user, context={"tier": tier}) for tier in ("free", "paid"))
    ask(paid, "My colour is turquoise")

    forgetful = ask(free, "Which?", requestContext={"tier": "paid", "language": "en"})
    remembering = ask(paid, "Which?", memory={"options": {"lastMessages": 5}})

    assert "Before that" not in forgetful
    assert "Before that" in remembering
    assert [context["tier"] for context, _ in calls] == ["paid", "free", "paid"]
    assert calls[1][0]["language"] == "en"
    assert calls[1][0]["userId"] == f"u{user.pk}"
    assert [options for _, options in calls] == [{}, {}, {"lastMessages": 5}]
