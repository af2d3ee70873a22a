"""Formats of durations, costs and model names."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONMapping


def model_name(model: JSONMapping) -> str:
    """Return the displayed name of a model: `provider/name`."""
    return f"{model['provider']}/{model['name']}"


def format_duration(span: timedelta | None) -> str:
    """Return a duration such as `35 ms`, `2.3 s`, `48 s`, `3 min 05 s`, `2 h` or `6 days 1 h`."""
    if span is None:
        return ""
    seconds = max(span.total_seconds(), 0)
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    # From 9.95 on, this format would show 10.0 s, and the next one 60 s from 59.5 on.
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    text = pluralize(days, "day")
    return f"{text} {hours} h" if hours else text


def format_cost(cost: Decimal | None) -> str:
    """Return US dollars, with two significant digits below a cent. The text is blank without a cost."""
    if cost is None:
        return ""
    if not cost or cost >= Decimal("0.01"):
        return f"${cost:,.2f}"
    digits = 1 - cost.adjusted()
    return f"${cost:.{digits}f}"


def format_dollars(amount: float) -> str:
    """Return US dollars like `format_cost`."""
    return format_cost(Decimal(str(round(amount, 8))))


def total_tokens(usage: JSONMapping) -> int:
    """Return the number of input and output tokens."""
    total = usage.get("totalTokens")
    return int(total if total is not None else (usage.get("inputTokens") or 0) + (usage.get("outputTokens") or 0))
