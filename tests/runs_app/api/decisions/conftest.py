"""A run that waits for an approval, and requests that decide it."""

import json

import pytest
from django.utils import timezone

from runs_app.approvals import resuming
from runs_app.models import AgentRun, RunEvent
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import PendingCallFactory, RunFactory

SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "amount": {"type": "number", "maximum": 500}},
    "required": ["order", "amount"],
}
QUESTION = {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}, "required": ["size"]}
STREAMS = ["approve-tool-call", "resume-stream", "resume-stream-until-idle", "approve-network-tool-call"]
STREAMS += ["decline-tool-call", "decline-network-tool-call", "resume-network"]
GENERATES = ["approve-tool-call-generate", "decline-tool-call-generate"]


class FinishingRunner:
    """A runner that writes the rest of a run at once."""

    def dispatch(self, run_id):
        run = AgentRun.objects.get(pk=run_id)
        number = run.events.count()
        result = {"toolCallId": "call-1", "toolName": "refund", "result": "Done", "isError": False}
        text = {"id": "2-0", "text": "Refunded."}
        for kind, payload in (("tool-result", result), ("step-start", {}), ("text-delta", text), ("finish", {})):
            number += 1
            RunEvent.objects.create(run=run, number=number, type="chunk", data={"type": kind, "payload": payload})
        AgentRun.objects.filter(pk=run_id).update(
            status="succeeded", finish_reason="stop", output="Refunded.", finished_at=timezone.now()
        )
        return True


class AskingAgainRunner:
    """A runner that lets a run wait for a second call at once."""

    def dispatch(self, run_id):
        run = AgentRun.objects.get(pk=run_id)
        last = run.events.count()
        result = {"toolCallId": "call-1", "toolName": "refund", "result": "Done", "isError": False}
        again = {"toolCallId": "call-2", "toolName": "refund", "args": {}}
        events = [("tool-result", result), ("tool-call", again), ("tool-call-approval", again), ("suspended", {})]
        for number, (kind, payload) in enumerate(events, last + 1):
            data = {"type": kind, "payload": payload}
            RunEvent.objects.create(run=run, number=number, type=kind if kind == "suspended" else "chunk", data=data)
        AgentRun.objects.filter(pk=run_id).update(status="suspended", suspended_at=timezone.now())
        run.refresh_from_db()
        PendingCallFactory(run=run, call_id="call-2", segment=run.segment)
        return True


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.setattr(resuming, "get_runner", FinishingRunner)


@pytest.fixture
def user(transactional_db):
    return member("editor", username="eddie")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


@pytest.fixture
def run(user):
    """Return a run that waits for approval of the call "call-1"."""
    return waiting_run(user)


@pytest.fixture
def call(run):
    return PendingCallFactory(run=run, call_id="call-1", arguments_schema=SCHEMA)


def waiting_run(user, **fields):
    agent = fields.pop("agent", None) or AgentFactory(id="concierge")
    run = RunFactory(agent=agent, requested_by=user, suspended=True, chunks=[], **fields)
    payload = {"toolCallId": "call-1", "toolName": "refund", "args": {"order": "A-17", "amount": 250}}
    for number, kind in enumerate(("start", "tool-call", "tool-call-approval", "suspended"), 1):
        data = {"type": kind, "payload": payload if "call" in kind else {}}
        RunEvent.objects.create(run=run, number=number, type=kind if kind == "suspended" else "chunk", data=data)
    return run


def send(caller, route, agent_id="concierge", **body):
    return caller.client.post(f"/api/agents/{agent_id}/{route}", body, content_type="application/json")


def chunks(answer):
    assert answer.status_code == 200, answer.content
    blocks = b"".join(answer.streaming_content).decode().split("\n\n")[:-1]
    assert blocks[-1] == "data: [DONE]"
    return [json.loads(block.partition("data: ")[2]) for block in blocks[:-1] if "data: " in block]


def kinds(answer):
    return [chunk["type"] for chunk in chunks(answer)]


def body_for(route, run, **more):
    decision = {"resumeData": {"approved": True}} if route.startswith("resume") else {}
    return {"runId": str(run.pk), **decision, **more}
