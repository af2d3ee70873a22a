"""Activities of agents outside of this application during a run, for display in its transcript."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONMapping

ACTIVITY_PREFIX = "acp-"
THOUGHT = "Thought"
FILE_ACTIONS = {"write": "Wrote"}


@dataclass
class ActivityPart:
    """A plan, a tool call, a file, or another event of an agent outside of this application."""

    label: str  # "Plan", "Tool", "File", "Permission", "Thought", "Usage", "Session" or "Error"
    text: str
    note: str = ""
    lines: list[str] = field(default_factory=list)
    key: str = ""  # an activity with the same key replaces this one
    spans: tuple[()] = ()  # activities are not compared
    kind: str = "activity"


def read_activity(kind: str, payload: JSONMapping) -> ActivityPart | None:
    """Return the activity of an event, or None for one that is not displayed."""
    match kind:
        case "acp-plan":
            lines = plan_lines(payload)
            return ActivityPart("Plan", pluralize(len(lines), "step"), lines=lines, key="plan")
        case "acp-tool-call":
            call_id, title = payload.get("toolCallId", ""), payload.get("title") or payload.get("kind") or "Tool"
            return ActivityPart("Tool", str(title), str(payload.get("status") or ""), key=f"tool {call_id}")
        case "acp-file":
            action = FILE_ACTIONS.get(str(payload.get("action")), str(payload.get("action", "")))
            return ActivityPart("File", f"{action} {payload.get('path', '')}")
        case "acp-permission":
            answer = "allowed" if payload.get("allowed") else "rejected"
            return ActivityPart("Permission", str(payload.get("title", "")), answer, lines=reason_lines(payload))
        case "acp-thought":
            return ActivityPart(THOUGHT, str(payload.get("text", "")))
        case "acp-session":
            return ActivityPart("Session", str(payload.get("message", "")))
        case "acp-crash":
            text = str(payload.get("stderr") or "The program wrote no errors.")
            code = payload.get("exitCode")
            return ActivityPart("Error", "The program ended.", "" if code is None else f"exit {code}", [text])
    return None


def plan_lines(payload: JSONMapping) -> list[str]:
    entries = [entry for entry in payload.get("entries") or [] if isinstance(entry, dict)]
    return [f"{entry.get('content', '')} ({entry.get('status', 'pending')})" for entry in entries]


def reason_lines(payload: JSONMapping) -> list[str]:
    reason = payload.get("reason")
    return [str(reason)] if reason else []
