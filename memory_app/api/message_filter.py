"""The filter of the list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import F, Q, QuerySet

from agentcms.errors import BadRequest
from agentcms.wire.json_types import JSONObject, JSONValue
from agentcms.wire.timestamps import end_of_millisecond, parse_timestamp
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE
from memory_app.api.json_columns import containing_json
from memory_app.history.turn_markup import is_spoken_signal
from memory_app.models import Message, Thread

FILTER_ROLES = ("user", "assistant", "signal")
REMINDER_TYPES = ("system-reminder", "reactive")  # of signals
LOOKUPS = {"start": "created_at__gte", "end": "created_at__lte"}
EXCLUSIVE_LOOKUPS = {"start": "created_at__gt", "end": "created_at__lt"}
# The lookups that compare with the end of the millisecond of a time, not with its beginning.
AFTER_MILLISECOND = {LOOKUPS["end"], EXCLUSIVE_LOOKUPS["start"]}

Faults = list[tuple[str, str]]


def filtered_heads(thread: Thread, criteria: JSONObject) -> QuerySet[Message]:
    """Return the first rows of the messages that match a filter. Raise BadRequest if it is invalid."""
    faults: Faults = []
    heads = thread.messages.filter(head_number=F("number"), **read_times(criteria.get("dateRange"), faults))
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


def read_times(value: JSONValue, faults: Faults) -> dict[str, datetime]:
    """Return the lookups of a range of times. Add the faults of invalid ones.

    The range includes its start and its end, unless `startExclusive` or `endExclusive` is true.
    """
    value = value or {}
    if not isinstance(value, dict):
        faults.append(("filter.dateRange", "This must be an object with start and end."))
        return {}
    times: dict[str, datetime] = {}
    for name in LOOKUPS:
        if value.get(name) is None:
            continue
        lookup = (EXCLUSIVE_LOOKUPS if value.get(f"{name}Exclusive") is True else LOOKUPS)[name]
        try:
            time = parse_timestamp(value[name])
        except (TypeError, ValueError, AttributeError):
            faults.append((f"filter.dateRange.{name}", "Give an ISO 8601 time."))
            continue
        times[lookup] = end_of_millisecond(time) if lookup in AFTER_MILLISECOND else time
    return times
