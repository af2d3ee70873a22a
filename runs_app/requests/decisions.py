"""The bodies of requests that decide about calls that wait for people."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.names import printable_key, to_wire
from agentcms.wire.unknown_names import find_nearest_name
from agents_app.configuration.schema import WIRE_CONFIG, ConfigError, Issue, validate_fields
from runs_app.requests.body import KNOWN_KEYS, SENT_BY_CLIENT, WITHOUT_EFFECT

# Options of a run, which the published client may send with a decision. They have no effect there.
SENT_WITH_DECISIONS = KNOWN_KEYS | SENT_BY_CLIENT | WITHOUT_EFFECT
OTHER_NAMES = {"args": "arguments", "data": "resumeData"}  # which representations of calls have, or people guess


class CallBody(BaseModel):
    """The body that decides a call of a run: `toolCallId` may be left out if the run waits for one call only."""

    model_config = WIRE_CONFIG

    run_id: str
    tool_call_id: str | None = None
    reason: str | None = None
    arguments: JSONValue = None  # validated against the schema of the tool
    mark: str | None = None  # of the call that the reader saw


class ResumeBody(BaseModel):
    """The body that sends data to a call of a run."""

    model_config = WIRE_CONFIG

    run_id: str
    tool_call_id: str | None = None
    resume_data: JSONValue
    mark: str | None = None


class ThreadDecisionBody(BaseModel):
    """The body that approves or declines a call of a run in a conversation."""

    model_config = WIRE_CONFIG

    resource_id: str
    thread_id: str
    tool_call_id: str
    approved: bool
    reason: str | None = None
    resume_data: JSONValue = None
    mark: str | None = None


class DecisionBody(BaseModel):
    """The body of a decision about one call."""

    model_config = WIRE_CONFIG

    decision: str
    reason: str | None = None
    arguments: JSONValue = None
    resume_data: JSONValue = None
    mark: str | None = None


def parse_decision_body(model: type[BaseModel], body: JSONObject) -> JSONObject:
    """Return the fields of a decision by Python name. Raise ConfigError.

    A misspelled name is refused: without it, another decision than the one that was meant would be carried out.
    """
    if issues := [*misspelled_names(body, {to_wire(name) for name in model.model_fields})]:
        raise ConfigError(issues)
    return validate_fields(model, body)


def misspelled_names(body: JSONObject, known: set[str]) -> Iterator[Issue]:
    """Yield an issue for each name that nothing reads and that probably stands for a known one."""
    for name in body:
        if name not in known and name not in SENT_WITH_DECISIONS:
            meant = OTHER_NAMES[name] if OTHER_NAMES.get(name) in known else find_nearest_name(name, known)
            if meant is not None:
                yield Issue(printable_key(name), f"This name is unknown. Did you mean {meant}?")
