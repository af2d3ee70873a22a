"""Decisions about waiting calls of networks."""

import pytest

from tests.runs_app.api.decisions.conftest import body_for, chunks, send
from tests.runs_app.factories import PendingCallFactory


def test_a_network_answers_with_the_chunks_of_networks(editor, run, call, runner):
    answer = send(editor, "approve-network-tool-call", runId=str(run.pk))

    sent = chunks(answer)
    assert [chunk["type"] for chunk in sent] == [
        "tool-execution-start",
        "tool-execution-end",
        "routing-agent-text-delta",
        "routing-agent-end",
        "network-execution-event-finish",
        "network-execution-event-step-finish",
    ]
    assert {chunk["from"] for chunk in sent} == {"NETWORK"}
    assert sent[-1]["payload"]["result"] == "Refunded."


def test_a_network_goes_on_counting_its_iterations(editor, run, call, runner):
    run.events.filter(number=1).update(type="step-start", data={"type": "step-start", "payload": {}})

    sent = chunks(send(editor, "approve-network-tool-call", runId=str(run.pk)))

    iterations = {chunk["type"]: chunk["payload"].get("iteration") for chunk in sent}
    assert iterations["tool-execution-end"] == 1
    assert iterations["network-execution-event-step-finish"] == iterations["routing-agent-end"] == 2


@pytest.mark.parametrize("route", ["approve-network-tool-call", "decline-network-tool-call", "resume-network"])
def test_a_network_that_waits_for_several_calls_says_which(editor, run, call, runner, route):
    PendingCallFactory(run=run, call_id="call-2")

    answer = editor.post(f"/api/agents/concierge/{route}", body_for(route, run))

    assert (answer.status_code, answer.body["code"]) == (409, "several_calls")
    assert answer.body["toolCallIds"] == ["call-1", "call-2"]
