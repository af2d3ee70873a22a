"""Threads, messages, memory and the data of a person with the Python client."""

import asyncio
import json
import uuid

import pytest
from agentcms_client import CALLS, ApiError, AsyncClient, Client

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
    assert cms.send(CALLS.transfer_thread(f"{key}-2", f"bob-{key}"))["resourceId"] == f"bob-{key}"
    cms.send(CALLS.delete_messages(f"m-{key}", threadId=key))
    assert cms.send(CALLS.list_messages(key))["messages"] == []
    assert cms.send(CALLS.delete_thread(key))["result"] == "Thread deleted"


def test_the_client_reads_the_memory_of_an_agent(cms):
    key = f"o-{uuid.uuid4().hex[:8]}"
    memory = {"options": {"lastMessages": 5}, "observationalMemory": {"observation": {"messageTokens": 100}}}
    cms.create_agent(key, name="Observer", model={"provider": "demo", "name": "echo"}, instructions="", memory=memory)
    place = {"threadId": key, "resourceId": f"alice-{key}"}
    cms.send(CALLS.create_thread(key, **place))
    for word in ("One", "Two", "Three"):
        cms.generate(key, word * 40, memory={"thread": key, "resource": place["resourceId"]})

    record = cms.send(CALLS.await_observations(key, agentId=key, resourceId=place["resourceId"]))["record"]
    status = cms.send(CALLS.get_memory_status(key, **place))["observationalMemory"]

    assert cms.send(CALLS.get_memory_config(key))["config"]["lastMessages"] == 5
    assert record["threadId"] == key
    assert (status["enabled"], status["hasRecord"]) == (True, True)
    assert cms.send(CALLS.get_observational_memory(key, agentId=key))["record"]["id"] == record["id"]


def test_the_client_uses_the_older_routes_of_networks(cms):
    key = f"n-{uuid.uuid4().hex[:8]}"
    place = {"threadId": key, "resourceId": f"alice-{key}"}
    network = CALLS.network
    cms.create_agent(key, name="Network", model={"provider": "demo", "name": "echo"}, instructions="")

    assert cms.send(network.create_thread(key, **place))["id"] == key
    assert cms.send(network.update_thread(key, title="Trip"))["title"] == "Trip"
    assert cms.send(network.get_thread(key, networkId=key))["title"] == "Trip"
    assert cms.send(network.list_threads(resourceId=place["resourceId"], networkId=key))["total"] == 1
    cms.send(network.save_messages([{**place, "id": f"m-{key}", "role": "user", "content": "Hello"}]))
    assert [message["id"] for message in cms.send(network.list_messages(key))["messages"]] == [f"m-{key}"]
    cms.send(network.delete_messages(f"m-{key}", threadId=key))
    assert cms.send(network.list_messages(key))["messages"] == []
    assert cms.send(network.delete_thread(key))["result"] == "Thread deleted"


def test_the_asynchronous_client_exports_and_forgets_a_person(served):
    resource = f"alice-{uuid.uuid4().hex[:8]}"

    async def export_and_forget():
        async with AsyncClient(served.base_url, served.keys["python"]) as cms:
            await cms.send(CALLS.create_thread(resourceId=resource, threadId=resource))
            await cms.send(CALLS.save_messages([{"threadId": resource, "role": "user", "content": "Turquoise"}]))
            job = await cms.wait_for_job((await cms.send(CALLS.export_resource(resource)))["id"], 60)
            file = await cms.job_file(job["id"])
            forgotten = await cms.wait_for_job((await cms.send(CALLS.forget_resource(resource)))["id"], 60)
            with pytest.raises(ApiError) as caught:
                await cms.send(CALLS.get_thread(resource))
            return file, forgotten, caught.value.status

    file, forgotten, status = asyncio.run(export_and_forget())

    texts = [line["text"] for line in map(json.loads, file.splitlines()) if line["type"] == "message"]
    assert (texts, forgotten["result"]["messages"], status) == (["Turquoise"], 1, 404)
