"""A workflow that asks a person: what streams and networks say, and how its run goes on."""

import json

import pytest

from agents_app.registry import workflow
from runs_app.calling import current
from runs_app.models import PendingCall
from tests.api_client import Caller
from tests.durable.agent_tools import note
from tests.durable.test_journal import notes
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")

SCHEMA = {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}, "required": ["size"]}


@pytest.fixture
def caller():
    @workflow("measure")
    def measure(order: str) -> str:
        """Measure an order."""
        if (data := current().resume_data) is None:
            current().suspend({"question": f"Which size has {order}?"}, resume_schema=SCHEMA)
        note(f"measured {order} {data['size']}")
        return f"Size {data['size']}"

    plan = [[["workflow-measure", {"order": "A-17"}]], "Done."]
    model = {"provider": "planned", "name": "plan", "plan": plan}
    AgentFactory(id="measurer", model=model, workflows=["measure"])
    return Caller(api_key(member("editor")))


def stream(caller, route, **body):
    answer = caller.client.post(f"/api/agents/measurer/{route}", body, content_type="application/json")
    assert answer.status_code == 200, answer.content
    lines = b"".join(answer.streaming_content).decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def test_a_network_says_that_a_workflow_waits(planned, caller):
    chunks = stream(caller, "network", messages="Measure A-17")

    waiting = chunks[-1]
    assert (waiting["type"], waiting["from"]) == ("workflow-execution-suspended", "NETWORK")
    payload = waiting["payload"]
    assert (payload["workflowId"], payload["name"], payload["toolName"]) == ("measure", "measure", "workflow-measure")
    assert payload["suspendPayload"] == {"question": "Which size has A-17?"}
    assert json.loads(payload["resumeSchema"]) == SCHEMA

    resumed = stream(caller, "resume-network", runId=payload["runId"], resumeData={"size": "M"})

    assert [chunk["type"] for chunk in resumed[:2]] == ["workflow-execution-start", "workflow-execution-end"]
    assert (resumed[1]["payload"]["workflowId"], resumed[1]["payload"]["result"]) == ("measure", "Size M")
    assert resumed[-1]["payload"]["result"] == "Done."
    assert notes(planned, "measured") == ["measured A-17 M"]


def test_a_stream_says_that_a_workflow_waits(planned, caller):
    *_, waiting, suspended = stream(caller, "stream", messages="Measure A-17")

    assert (waiting["type"], suspended["type"]) == ("tool-call-suspended", "suspended")
    assert waiting["payload"]["toolName"] == "workflow-measure"
    assert waiting["payload"]["suspendPayload"] == {"question": "Which size has A-17?"}
    assert PendingCall.objects.get().kind == "suspend"

    resumed = stream(caller, "resume-stream", runId=waiting["runId"], resumeData={"size": "S"})

    assert resumed[1]["payload"]["result"] == "Size S"
    assert notes(planned, "measured") == ["measured A-17 S"]
