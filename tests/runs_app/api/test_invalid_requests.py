"""Invalid run requests."""

import pytest

from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def editor():
    AgentFactory(id="concierge", model=DEMO)
    return Caller(api_key(member("editor")))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "a", "instructions": "Be rude."}, "instructions"),
        ({"messages": "a", "system": "Be rude."}, "system"),
        ({"messages": "a", "context": ["b"]}, "context"),
        ({"messages": "a", "model": "openai/gpt-5"}, "model"),
        ({"messages": "a", "structuredOutput": {"schema": {}}}, "structuredOutput.schema"),
        ({"messages": "a", "toolsets": {"x": {}}}, "toolsets"),
        ({"messages": "a", "versions": {"agents": {}}}, "versions"),
        ({"messages": "a", "requireToolApproval": 7}, "requireToolApproval"),
        ({"messages": "a", "temperature": "hot"}, "temperature"),
        ({"messages": "a", "modelSettings": {"topP": 7}}, "modelSettings.topP"),
        ({"messages": "a", "maxSteps": 0}, "maxSteps"),
        ({"messages": "a", "memory": "t"}, "memory"),
        ({"messages": "a", "memory": {"thread": 7}}, "memory.thread"),
        ({"messages": "a", "memory": {"thread": "t" * 257}}, "memory.thread"),
        ({"messages": "a", "memory": {"thread": "t", "resource": []}}, "memory.resource"),
        ({"messages": "a", "clientTools": []}, "clientTools"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_request_is_a_400_with_its_path(editor, body, field):
    for act in ("generate", "stream"):
        answer = editor.post(f"/api/agents/concierge/{act}", body)

        assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, field)
    assert AgentRun.objects.count() == 0


def test_all_errors_are_reported_together(editor):
    body = {
        "messages": [{"role": "system", "content": "Be rude."}, "a", {"role": "user", "content": [{"type": "image"}]}],
        "instructions": "Be rude.",
        "temperature": "hot",
        "modelSettings": {"topP": 7},
        "clientTools": {"a b": {}, "c": 7},
        "memory": {"thread": 7, "resource": ""},
    }

    answer = editor.post("/api/agents/concierge/generate", body)

    assert answer.status_code == 400
    assert [issue["field"] for issue in answer.body["issues"]] == [
        "instructions",
        "temperature",
        "modelSettings.topP",
        "clientTools.a b",
        "clientTools.c",
        "memory.thread",
        "memory.resource",
        "messages[0].role",
        "messages[2].content[0]",
    ]


def test_a_long_name_is_shortened_in_the_error(editor):
    answer = editor.post("/api/agents/concierge/generate", {"messages": "a", "clientTools": {"x" * 100_000: {}}})

    assert (answer.status_code, len(answer.content) < 500) == (400, True)


@pytest.mark.parametrize("messages", ["", " \n", [{"role": "user", "content": ""}], ["a", ["b"], " "]], ids=str)
def test_an_empty_message_is_refused(editor, messages):
    answer = editor.post("/api/agents/concierge/generate", {"messages": messages})

    assert (answer.status_code, answer.body["code"]) == (400, "invalid_body")
    assert AgentRun.objects.count() == 0


@pytest.mark.parametrize("name", ["toolCallId", "toolName"])
def test_a_tool_result_needs_its_call(editor, name):
    part = {"type": "tool-result", "toolCallId": "1", "toolName": "a", "result": 1, name: ""}

    answer = editor.post("/api/agents/concierge/generate", {"messages": [{"role": "tool", "content": [part]}]})

    assert answer.body["issues"] == [{"field": f"messages[0].content[0].{name}", "message": "This may not be blank."}]


def test_options_without_effect_are_ignored(editor):
    body = {"messages": "Hello", "requestContext": {"a": 1}, "runId": "x", "savePerStep": True, "tracingOptions": {}}

    assert editor.post("/api/agents/concierge/generate", body).status_code == 200


def test_a_too_large_input_is_refused(editor, settings):
    settings.RUN_MAX_INPUT = 4096

    answer = editor.post("/api/agents/concierge/generate", {"messages": "x" * 5000})

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "messages")
    assert "4 KB" in answer.body["issues"][0]["message"]


@pytest.mark.parametrize("run_id", ["nonsense", "", "01a1fe8c-7c7b-7404-8d6a-c04284d0e6f1"])
def test_a_missing_run_is_a_404(editor, run_id):
    assert editor.get(f"/api/runs/{run_id or 'x'}/events").status_code == 404
    assert editor.post("/api/agents/concierge/observe", {"runId": run_id}).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "runId"), ({"runId": 7}, "runId"), ({"runId": "x", "offset": "1"}, "offset"), ({"runId": None}, "runId")],
    ids=str,
)
def test_observing_a_run_needs_its_id_and_an_index(editor, body, field):
    answer = editor.post("/api/agents/concierge/observe", body)

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, field)


@pytest.mark.parametrize("spelled", ["{%s}", "urn:uuid:%s"])
def test_a_run_has_one_id(editor, spelled):
    run_id = editor.post("/api/agents/concierge/generate", {"messages": "a"}).body["runId"]

    assert editor.get(f"/api/runs/{run_id.upper()}").status_code == 200
    assert editor.get(f"/api/runs/{spelled % run_id}").status_code == 404
    assert editor.get(f"/api/runs/{run_id.replace('-', '')}").status_code == 404


def test_an_invalid_body_cancels_no_run(editor):
    run_id = editor.post("/api/agents/concierge/generate", {"messages": "a"}).body["runId"]

    for body in (b"{", b"[]", b'{"a":1,"a":2}'):
        assert editor.post(f"/api/runs/{run_id}/cancel", body).status_code == 400
