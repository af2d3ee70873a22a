"""Threads, messages and working memory with the Python client."""

import uuid

import pytest
from agentcms_client import CALLS, Client

from tests.served import Served


@pytest.fixture
def cms(served: Served):
    with Client(served.base_url, served.keys["python"]) as client:
        yield client


def test_the_client_stores_and_reads_conversations(cms):
    key = f"c-{uuid.uuid4().hex[:8]}"
    memory = {"options": {"workingMemory": {"template": "# Person"}}}
    cms.create_agent(key, name="Concierge", model={"provider": "demo", "name": "echo"}, instructions="", memory=memory)
    place = {"threadId": key, "resourceId": f"alice-{key}"}

    assert cms.send(CALLS.create_thread(key, **place, title="Trip", metadata={"a": {"b": 1}}))["title"] == "Trip"
    assert cms.send(CALLS.list_threads(resourceId=place["resourceId"], metadata={"a": {"b": 1}}))["total"] == 1
    cms.send(CALLS.save_messages([{**place, "id": f"m-{key}", "role": "user", "content": "My colour is blue."}]))
    assert cms.send(CALLS.search_messages("colour", resourceId=place["resourceId"]))["count"] == 1
    cms.send(CALLS.update_thread(key, title="Journey"))
    assert cms.send(CALLS.get_thread(key))["title"] == "Journey"
    assert cms.send(CALLS.update_working_memory(key, "# Ann")) == {"success": True}
    assert cms.send(CALLS.get_working_memory(key))["workingMemory"] == "# Ann"
    assert cms.send(CALLS.get_observational_memory(key))["record"] is None
    clone = cms.send(CALLS.clone_thread(key, newThreadId=f"{key}-2"))
    assert len(clone["clonedMessages"]) == 1
    assert cms.send(CALLS.transfer_thread(f"{key}-2", "bob"))["resourceId"] == "bob"
    cms.send(CALLS.delete_messages(f"m-{key}", threadId=key))
    assert cms.send(CALLS.list_messages(key))["messages"] == []
    assert cms.send(CALLS.delete_thread(key))["result"] == "Thread deleted"
