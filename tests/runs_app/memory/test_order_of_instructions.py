"""The order of the instructions of an agent whose memory has all parts."""

import pytest

from jobs_app import runner
from memory_app.models import Observation, Resource, Thread
from memory_app.recall.indexing import INDEX_MESSAGES
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread

pytestmark = pytest.mark.usefixtures("idle_engine")

MEMORY = {
    "options": {"lastMessages": 2, "semanticRecall": {"topK": 2}, "workingMemory": {"template": "# Person"}},
    "observationalMemory": {"observation": {"messageTokens": 10_000}},
}


@pytest.mark.parametrize("is_durable", [False, True])
def test_what_changes_least_comes_first(spy, is_durable):
    """Providers cache the beginning of a request, as far as it equals that of the request before."""
    user = member("editor")
    agent = AgentFactory(
        id="concierge", model={"provider": "spy", "name": "agent"}, instructions="Greet guests.", memory=MEMORY
    )
    elsewhere = add_thread(user, "elsewhere", texts=[("user", "My favourite colour is teal.")], agent=agent)
    runner.run_now(INDEX_MESSAGES, {"thread": elsewhere.pk, "embedder": "local/multilingual"})
    thread = add_thread(user, "t", texts=[("user", "Hello"), ("assistant", "Good day")], agent=agent)
    numbers = {"first": 1, "last": 1, "tokens": 3, "message_tokens": 3}
    Observation.objects.create(
        thread=Thread.objects.get(pk=thread.pk), text="Ann said hello.", is_active=True, **numbers
    )
    Resource.objects.filter(key="alice").update(working_memory="Ann likes tea.", working_revision=1)

    body = {"messages": "Which colour do I like best?", "memory": {"thread": "t", "resource": "alice"}}
    answer = Caller(api_key(user)).post("/api/agents/concierge/generate", {**body, "durable": is_durable})

    assert answer.status_code == 200, answer.body
    text = spy.of("agent")[-1].instructions
    parts = ["Greet guests.", "Ann said hello.", "Ann likes tea.", "My favourite colour is teal."]
    positions = [text.find(part) for part in parts]
    assert -1 not in positions
    assert positions == sorted(positions)
