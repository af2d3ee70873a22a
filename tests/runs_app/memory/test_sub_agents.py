"""Memory of sub-agents: a thread of their own below that of their parent, of the same resource."""

import pytest

from access_app.models import ApiKey
from memory_app.history.threads import transfer_thread
from memory_app.models import Participant, Resource, Thread
from memory_app.realms import memory_caller
from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

USE_HELPER = "Use agent-helper for this"


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def caller(user):
    return Caller(api_key(user))


def ask(caller, text, agent="concierge", **memory):
    answer = caller.post(f"/api/agents/{agent}/generate", {"messages": text, "memory": memory})
    assert answer.status_code == 200, answer.body
    return answer.body["text"]


def agents(memory="last-messages", **options):
    AgentFactory(id="helper", model=DEMO, instructions="", memory=memory, **options)
    AgentFactory(id="concierge", model=DEMO, instructions="", agents=["helper"], memory="last-messages")


def child_of(key="t"):
    return Thread.objects.get(parent__key=key, agent_key="helper")


def test_a_sub_agent_remembers_its_earlier_calls_in_the_conversation(caller):
    agents()

    ask(caller, "Use agent-helper for turquoise", thread="t", resource="alice")
    answer = ask(caller, USE_HELPER, thread="t", resource="alice")
    other = ask(caller, USE_HELPER, thread="other", resource="alice")

    assert "Before that: turquoise" in answer.replace("for ", "")
    assert "turquoise" not in other
    child = child_of()
    assert (child.realm, child.resource_key, child.messages.count()) == (child.parent.realm, "alice", 4)
    assert {run.thread_id for run in AgentRun.objects.filter(agent_key="helper")} == {child.pk, child_of("other").pk}


def test_its_thread_is_not_listed_and_goes_with_its_parent(caller):
    agents()
    ask(caller, USE_HELPER, thread="t", resource="alice")

    listed = caller.get("/api/memory/threads?resourceId=alice").body["threads"]
    caller.delete("/api/memory/threads/t")

    assert [thread["id"] for thread in listed] == ["t"]
    assert not Thread.objects.exists()


def test_it_moves_with_its_parent(caller, user):
    agents()
    ask(caller, USE_HELPER, thread="t", resource="alice")

    transfer_thread(memory_caller(user), Thread.objects.get(key="t"), "bob")

    assert {*Thread.objects.values_list("resource_key", flat=True)} == {"bob"}


def test_both_conversations_store_the_teams_of_their_agents(caller):
    agents()
    ask(caller, USE_HELPER, thread="t", resource="alice")

    assert [*Thread.objects.order_by("pk").values_list("agent_key", "agent_owner_id")] == [
        ("concierge", ""),
        ("helper", ""),
    ]


def test_it_knows_the_working_memory_of_the_resource(caller):
    agents({"options": {"workingMemory": {"template": "# Person"}}})

    ask(caller, 'Use agent-helper with updateWorkingMemory {"memory": "Ann likes tea"}', resource="alice")

    assert Resource.objects.get(key="alice").working_memory == "Ann likes tea"
    assert AgentRun.objects.get(agent_key="helper").thread is None


def test_in_a_shared_conversation_it_knows_nothing_else_of_the_resource(caller):
    recall = {"options": {"workingMemory": {"template": "# Person"}, "semanticRecall": True}}
    agents(recall)
    note = 'Use agent-helper with updateWorkingMemory {"memory": "Ann likes tea"}'
    ask(caller, note, thread="one", resource="alice")
    ask(caller, USE_HELPER, thread="t", resource="alice")
    guest = member("editor")
    Participant.objects.create(thread=Thread.objects.get(key="t"), user=guest, name="Bob")

    answer = ask(Caller(api_key(guest)), USE_HELPER, thread="t")

    run = AgentRun.objects.filter(agent_key="helper").latest("created_at")
    assert "tea" not in str(answer) + str(run.remembered)
    assert not {"workingMemory", "recall"} & run.remembered.keys()


def test_a_call_that_stores_nothing_binds_sub_agents_too(caller):
    agents()

    ask(caller, USE_HELPER, thread="t", resource="alice", readOnly=True)

    assert not child_of().messages.exists()


def test_a_sub_agent_without_memory_has_no_thread_and_belongs_to_the_resource(caller):
    """Otherwise a cached answer of one end user of a service could be given to another."""
    agents(memory=None)

    ask(caller, USE_HELPER, thread="t", resource="alice")

    assert Thread.objects.get().key == "t"
    assert AgentRun.objects.get(agent_key="helper").resource.key == "alice"


def test_a_sub_agent_of_a_sub_agent_without_memory_has_a_thread_below_the_conversation(caller):
    AgentFactory(id="inner", model=DEMO, instructions="", memory="last-messages")
    AgentFactory(id="helper", model=DEMO, instructions="", agents=["inner"])
    AgentFactory(id="concierge", model=DEMO, instructions="", agents=["helper"], memory="last-messages")

    ask(caller, "Use agent-helper with Use agent-inner", thread="t", resource="alice")

    assert Thread.objects.get(agent_key="inner").parent.key == "t"


def test_a_key_for_one_resource_does_not_read_the_runs_of_sub_agents(user):
    agents()
    bound = Caller(ApiKey.objects.issue(user, resource="alice")[1])
    ask(bound, USE_HELPER, thread="t")
    child = AgentRun.objects.get(agent_key="helper")

    assert child.resource.key == "alice"
    assert bound.get("/api/runs").body["total"] == 1
    assert bound.get(f"/api/runs/{child.pk}").status_code == 404
