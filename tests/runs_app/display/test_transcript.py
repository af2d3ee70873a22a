"""The parts of an answer, built from the events of a run."""

from datetime import UTC, datetime, timedelta

from runs_app.display.spans import build_spans
from runs_app.display.transcript import TextPart, ToolCallPart, Transcript
from runs_app.models import AgentRun, PendingCall, RunEvent

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def events(*chunks):
    """Return events with these chunks of type and payload, one second apart."""
    return [
        RunEvent(number=number, data={"type": kind, "payload": payload}, created_at=NOON + timedelta(seconds=number))
        for number, (kind, payload) in enumerate(chunks, 1)
    ]


def transcript(*chunks):
    return Transcript(events(*chunks))


def test_text_deltas_become_one_part():
    result = transcript(
        ("text-start", {"id": "1"}), ("text-delta", {"text": "Good "}), ("text-delta", {"text": "day."})
    )

    assert result.visible_parts == [TextPart("text", "Good day.")]
    assert result.last_number == 3


def test_text_without_a_start_event_is_a_part():
    assert transcript(("text-delta", {"text": "Hello"})).visible_parts == [TextPart("text", "Hello")]


def test_a_call_is_at_its_position_with_its_result():
    result = transcript(
        ("text-delta", {"text": "Let me count."}),
        ("tool-call", {"toolCallId": "a", "toolName": "word-count", "args": {"text": "one two"}}),
        ("tool-result", {"toolCallId": "a", "toolName": "word-count", "result": 2}),
        ("text-delta", {"text": "Two."}),
    )

    before, call, after = result.visible_parts
    assert (before.text, after.text) == ("Let me count.", "Two.")
    assert (call.title, call.noun, call.state, call.result) == ("Word count", "tool", "done", "2")
    assert call.arguments == '{\n  "text": "one two"\n}'
    assert call.ended_at - call.started_at == timedelta(seconds=1)


def test_an_error_result_is_marked():
    called = ("tool-call", {"toolCallId": "a", "toolName": "calculator", "args": {}})

    by_flag = transcript(called, ("tool-result", {"toolCallId": "a", "result": "No.", "isError": True}))
    by_type = transcript(called, ("tool-error", {"toolCallId": "a", "error": "No."}))

    assert [result.calls["a"].state for result in (by_flag, by_type)] == ["failed", "failed"]
    assert [result.calls["a"].result for result in (by_flag, by_type)] == ["No.", "No."]


def test_workflows_and_sub_agents_have_their_own_labels():
    assert ToolCallPart("a", "workflow-triage-ticket").noun == "workflow"
    assert ToolCallPart("a", "agent-reply-drafter").noun == "sub-agent"
    assert ToolCallPart("a", "agent-reply-drafter").title == "reply-drafter"


def test_a_result_without_its_call_is_omitted():
    assert transcript(("tool-result", {"toolCallId": "gone", "result": 1})).visible_parts == []


def test_a_huge_value_is_truncated_with_its_length():
    result = transcript(("tool-call", {"toolCallId": "a", "toolName": "x", "args": {"text": "a" * 30_000}}))

    assert result.calls["a"].arguments.endswith("characters in total)")
    assert len(result.calls["a"].arguments) < 20_100


def test_passages_are_read_from_the_whole_result():
    row = {"document": "Install.md", "place": "Ports", "score": 0.5, "text": "a" * 8000}
    result = transcript(
        ("tool-call", {"toolCallId": "a", "toolName": "search"}),
        ("tool-result", {"toolCallId": "a", "result": {"knowledgeBase": "handbook", "results": [row] * 5}}),
    )

    assert result.calls["a"].result.endswith("characters in total)")
    assert len(result.calls["a"].passages) == 5


def test_time_is_divided_between_queue_model_and_tools():
    happened = events(
        ("start", {}),
        ("step-start", {}),
        ("tool-call", {"toolCallId": "a", "toolName": "word-count"}),
        ("tool-result", {"toolCallId": "a", "result": 2}),
        ("step-finish", {}),
        ("step-start", {}),
        ("text-delta", {"text": "Two."}),
        ("step-finish", {}),
        ("finish", {}),
    )
    run = AgentRun(created_at=NOON, started_at=NOON + timedelta(seconds=1), finished_at=NOON + timedelta(seconds=10))

    time_spans = build_spans(run, happened, Transcript(happened).calls.values())

    assert [(span.kind, span.label, span.x, span.width, span.duration_text) for span in time_spans] == [
        ("wait", "Waiting", 0, 100, "1.0 s"),
        ("wait", "Preparing", 100, 100, "1.0 s"),
        ("model", "Model, step 1", 200, 100, "1.0 s"),
        ("tool", "Word count", 300, 100, "1.0 s"),
        ("model", "Model, step 2", 600, 200, "2.0 s"),
    ]


def test_an_unfinished_span_ends_with_the_run():
    happened = events(("step-start", {}), ("tool-call", {"toolCallId": "a", "toolName": "word-count"}))
    run = AgentRun(created_at=NOON, started_at=NOON, finished_at=NOON + timedelta(seconds=4))

    tool = build_spans(run, happened, Transcript(happened).calls.values())[-1]

    assert (tool.x, tool.width) == (500, 500)


def test_a_short_bar_is_visible_and_inside_the_chart():
    happened = events(("step-start", {}), ("step-finish", {}))
    run = AgentRun(created_at=NOON, started_at=NOON, finished_at=NOON + timedelta(hours=3))

    bars = build_spans(run, happened, [])

    assert min(bar.width for bar in bars) >= 4
    assert max(bar.x + bar.width for bar in bars) <= 1000


def test_a_wait_that_is_longer_than_the_work_is_shortened():
    happened = events(("step-start", {}), ("step-finish", {}))
    run = AgentRun(created_at=NOON, started_at=NOON, finished_at=NOON + timedelta(hours=3))
    times = {"created_at": NOON + timedelta(minutes=1), "tool": "refund"}
    waits = [PendingCall(decided_at=NOON + timedelta(minutes=end), **times) for end in (2, 170)]

    short, long = (build_spans(run, happened, [], [wait]) for wait in waits)

    assert [span.label for span in long if span.is_shortened] == ["refund"]
    assert not any(span.is_shortened for span in short)
