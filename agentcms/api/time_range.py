"""Ranges of times, as the published client writes them: `{start?, end?, startExclusive?, endExclusive?}`."""

from __future__ import annotations

from datetime import datetime

from agentcms.wire.json_types import JSONValue
from agentcms.wire.timestamps import end_of_millisecond, parse_timestamp

LOOKUPS = {"start": "gte", "end": "lte"}
EXCLUSIVE_LOOKUPS = {"start": "gt", "end": "lt"}
# The lookups that compare with the end of the millisecond of a time, not with its beginning.
AFTER_MILLISECOND = {LOOKUPS["end"], EXCLUSIVE_LOOKUPS["start"]}


def read_time_range(value: JSONValue, column: str, field: str, faults: list[tuple[str, str]]) -> dict[str, datetime]:
    """Return the lookups of a column for a range of times. Add the faults of invalid ones.

    The range includes its start and its end, unless `startExclusive` or `endExclusive` is true.
    """
    value = value or {}
    if not isinstance(value, dict):
        faults.append((field, "This must be an object with start and end."))
        return {}
    times: dict[str, datetime] = {}
    for name in LOOKUPS:
        if value.get(name) is None:
            continue
        lookup = (EXCLUSIVE_LOOKUPS if value.get(f"{name}Exclusive") is True else LOOKUPS)[name]
        try:
            time = parse_timestamp(value[name])
        except (TypeError, ValueError, AttributeError):
            faults.append((f"{field}.{name}", "Give an ISO 8601 time."))
            continue
        times[f"{column}__{lookup}"] = end_of_millisecond(time) if lookup in AFTER_MILLISECOND else time
    return times
