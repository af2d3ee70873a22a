"""Unknown names in the bodies of runs."""

import pytest

from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")

GENERATE = "/api/agents/concierge/generate"


@pytest.fixture
def editor():
    AgentFactory(id="concierge", model=DEMO)
    return Caller(api_key(member("editor")))


def names(items):
    return [(item["field"], item["message"].removeprefix("This name is unknown. ")) for item in items]


def test_unknown_keys_are_warnings_of_the_run(editor):
    sent = {"messages": "Hi", "temprature": 0.1, "modelSettings": {"topp": 1}, "memory": {"thred": "t"}}

    answer = editor.post(f"{GENERATE}?verisonNumber=1", sent)

    assert names(answer.body["warnings"]) == [
        ("verisonNumber", "Did you mean versionNumber?"),
        ("temprature", "Did you mean temperature?"),
        ("memory.thred", "Did you mean thread?"),
        ("modelSettings.topp", "Did you mean topP?"),
    ]
    assert AgentRun.objects.get().warnings == answer.body["warnings"]


def test_the_stream_begins_with_the_warnings(editor):
    answer = editor.client.post(
        "/api/agents/concierge/stream", {"messages": "Hi", "temprature": 0.1}, content_type="application/json"
    )

    assert b"Did you mean temperature?" in b"".join(answer.streaming_content)


def test_strict_starts_no_run(editor):
    sent = {"messages": "Hi", "temprature": 0.1, "providerOptions": {}}

    refused = editor.post(f"{GENERATE}?strict=true", sent)

    assert (refused.status_code, names(refused.body["issues"])) == (
        400,
        [("temprature", "Did you mean temperature?"), ("providerOptions", "This has no effect here. Omit it.")],
    )
    assert editor.post(f"{GENERATE}?strict=true&verison=1", {"messages": "Hi"}).status_code == 400
    assert not AgentRun.objects.exists()


def test_what_the_published_client_sends_is_silent(editor):
    sent = {"messages": "Hi", "requestContext": {}, "runId": "x", "savePerStep": False, "tracingOptions": {}}

    assert editor.post(GENERATE, sent).body["warnings"] == []
    assert editor.post(f"{GENERATE}?strict=true", {"messages": "Hi", "requestContext": {}}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *[(f"agents/concierge/{route}", {}) for route in ("observe", "recover", "approve-tool-call")],
        *[(f"agents/concierge/{route}", {}) for route in ("decline-tool-call-generate", "approve-network-tool-call")],
        ("agents/concierge/resume-stream", {"resumeData": {}}),
        (
            "agents/concierge/send-tool-approval",
            {"resourceId": "r", "threadId": "t", "toolCallId": "c", "approved": True},
        ),
        ("approvals/0197a6f0-0000-7000-8000-000000000000", {"decision": "approve"}),
    ],
)
def test_strict_requests_about_existing_runs_refuse_unknown_names(editor, path, body):
    run_id = {"runId": "0197a6f0-0000-7000-8000-000000000000"}
    body = (run_id if "toolCallId" not in body and "decision" not in body else {}) | body | {"zebra": 1}

    refused = editor.post(f"/api/{path}?strict=true", body)
    tolerated = editor.post(f"/api/{path}", body)

    assert (refused.status_code, names(refused.body["issues"])) == (400, [("zebra", "Nothing reads it.")])
    assert tolerated.status_code == 404
