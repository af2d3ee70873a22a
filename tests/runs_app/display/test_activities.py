"""Activities of ACP agents in the transcript of a run."""

from datetime import UTC, datetime

from runs_app.display.transcript import Transcript
from runs_app.models import RunEvent


def transcript(*chunks):
    events = [
        RunEvent(number=number, data={"type": kind, "payload": payload}, created_at=datetime.now(UTC))
        for number, (kind, payload) in enumerate(chunks, 1)
    ]
    return Transcript(events)


def test_updates_of_one_tool_call_or_plan_are_one_part():
    parts = transcript(
        ("acp-thought", {"text": "I should "}),
        ("acp-thought", {"text": "write."}),
        ("acp-plan", {"entries": [{"content": "Write", "status": "pending"}]}),
        ("acp-tool-call", {"toolCallId": "1", "title": "Write a.txt", "status": "pending"}),
        ("acp-file", {"path": "a.txt", "action": "write"}),
        ("acp-tool-call", {"toolCallId": "1", "title": "Write a.txt", "status": "completed"}),
        ("acp-plan", {"entries": [{"content": "Write", "status": "completed"}]}),
        ("acp-permission", {"title": "Run", "allowed": False, "reason": "Nobody can be asked."}),
        ("acp-crash", {"exitCode": 3, "stderr": "The key is ••••."}),
        ("acp-usage", {"inputTokens": 7}),
        ("acp-unknown", {}),
    ).visible_parts

    assert [(part.label, part.text, part.note, part.lines) for part in parts] == [
        ("Thought", "I should write.", "", []),
        ("Plan", "1 step", "", ["Write (completed)"]),
        ("Tool", "Write a.txt", "completed", []),
        ("File", "Wrote a.txt", "", []),
        ("Permission", "Run", "rejected", ["Nobody can be asked."]),
        ("Error", "The program ended.", "exit 3", ["The key is ••••."]),
    ]
