"""The filter of the list of messages."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F, Q, QuerySet

from agentcms.api.time_range import read_time_range
from agentcms.errors import BadRequest
from agentcms.wire.json_types import JSONObject
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE
from memory_app.api.json_columns import containing_json
from memory_app.history.turn_markup import is_spoken_signal
from memory_app.models import Message, Thread

FILTER_ROLES = ("user", "assistant", "signal")
REMINDER_TYPES = ("system-reminder", "reactive")  # of signals


def filtered_heads(thread: Thread, criteria: JSONObject) -> QuerySet[Message]:
    """Return the first rows of the messages that match a filter. Raise BadRequest if it is invalid."""
    faults: list[tuple[str, str]] = []
    times = read_time_range(criteria.get("dateRange"), "created_at", "filter.dateRange", faults)
    heads = thread.messages.filter(head_number=F("number"), **times)
    roles, metadata = criteria.get("roles"), criteria.get("metadata") or {}
    if roles is not None and not (isinstance(roles, list) and all(role in FILTER_ROLES for role in roles)):
        faults.append(("filter.roles", f"This must be a list of {', '.join(FILTER_ROLES)}."))
    if not isinstance(metadata, dict):
        faults.append(("filter.metadata", NOT_AN_OBJECT_MESSAGE))
    if faults:
        raise BadRequest("query parameters", faults)
    if roles is not None:
        heads = heads.filter(has_wire_role(roles))
    return containing_json(heads, "attributes", {"metadata": metadata} if metadata else {})


def has_wire_role(roles: Sequence[str]) -> Q:
    """Return the condition for messages that clients see in one of these roles, as `wire_role` names them."""
    conditions = {
        "user": Q(role=Message.Role.USER) | is_spoken_signal(),
        # Results without their call are a message of their own.
        "assistant": Q(role__in=(Message.Role.ASSISTANT, Message.Role.TOOL)),
        "signal": Q(role=Message.Role.SIGNAL) & ~is_spoken_signal(),
    }
    # An empty list of roles matches no message.
    condition = Q(pk__in=[])
    for role in {*roles}:
        condition |= conditions[role]
    return condition


def without_reminders(heads: QuerySet[Message]) -> QuerySet[Message]:
    """Leave out the signals that remind the agent of something. The published protocol lists them on request."""
    return heads.exclude(role=Message.Role.SIGNAL, attributes__signal__type__in=REMINDER_TYPES)
