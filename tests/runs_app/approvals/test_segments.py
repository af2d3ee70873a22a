"""The conversation of a run that waits, as it is stored."""

import json
from datetime import UTC, datetime

from pydantic_ai import ModelMessagesTypeAdapter
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage, RunUsage

from runs_app.approvals.segments import _usage_adapter, dump_messages, without_defaults

AT = datetime(2026, 11, 24, tzinfo=UTC)
MESSAGES = [
    ModelRequest(
        [SystemPromptPart("Be brief.", timestamp=AT), UserPromptPart("Hi", timestamp=AT)],
        instructions="",
        timestamp=AT,
    ),
    ModelResponse(
        [
            ThinkingPart("Hm.", id="r1", signature="x", provider_name="openai"),
            TextPart("", id="t1"),
            ToolCallPart("refund", {"order": None, "kind": "request", "id": None}, "c1"),
            ToolCallPart("refund", "{}", "c2"),
        ],
        usage=RequestUsage(input_tokens=5, details={"x": 0}),
        model_name="plan",
        timestamp=AT,
        provider_details={"metadata": None},
    ),
    ModelRequest(
        [
            ToolReturnPart("refund", None, "c1", timestamp=AT),
            ToolReturnPart(
                "refund", {"state": "complete", "metadata": None}, "c2", timestamp=AT, metadata={"a": None}
            ),
            ToolReturnPart("refund", "Again.", "c3", timestamp=AT, outcome="retried"),
        ],
        timestamp=AT,
    ),
]


def test_messages_are_read_back_as_they_were():
    stored = json.loads(json.dumps(dump_messages(MESSAGES)))

    assert ModelMessagesTypeAdapter.validate_python(stored) == MESSAGES


def test_empty_members_are_not_stored():
    message = ModelResponse([ToolCallPart("refund", {}, "c1")], timestamp=AT)
    (stored,) = dump_messages([message])

    assert stored["parts"] == [{"tool_name": "refund", "args": {}, "tool_call_id": "c1", "part_kind": "tool-call"}]
    assert (
        len(json.dumps(stored)) < len(json.dumps(ModelMessagesTypeAdapter.dump_python(MESSAGES, mode="json")[1])) / 2
    )


def test_usage_is_read_back_as_it_was():
    usage = RunUsage(input_tokens=7, requests=2, details={"reasoning": 0})
    stored = without_defaults(_usage_adapter.dump_python(usage, mode="json"), usage)

    assert stored == {"input_tokens": 7, "requests": 2, "details": {"reasoning": 0}}
    assert _usage_adapter.validate_python(stored) == usage
