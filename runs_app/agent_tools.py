"""Registration of the built-in memory, of the response cache, and of example tools that wait for people.

The target of a memory returns a capability of pydantic-ai.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from agentcms.wire.json_types import JSONMapping
from agents_app.registry import Entry, Kind, processor, registry, tool
from runs_app.calling import ToolCall, current
from runs_app.response_cache.options import DEFAULT_SECONDS, PROCESSOR_KEY

if TYPE_CHECKING:
    from runs_app.memory.last_messages import LastMessages


def last_messages() -> LastMessages:
    from runs_app.memory.last_messages import LastMessages  # imports pydantic-ai, which is heavy

    return LastMessages()


registry.add(
    Entry(
        Kind.MEMORY,
        "last-messages",
        "Last messages",
        "The last twenty messages of the thread.",
        target=last_messages,
    )
)


@processor(PROCESSOR_KEY, title="Response cache")
def response_cache(
    text: str,
    ttl: int = DEFAULT_SECONDS,
    scope: str | None = "",
    bust: bool = False,
    cache_key: str = "",
    tools: bool = False,
) -> str:
    """Answer a request to the model like an equal one before it, for `ttl` seconds.

    The builder of an agent reads these arguments. The texts stay unchanged.
    """
    return text


MAX_REFUND = 100  # above this amount a person approves


def is_large_refund(arguments: JSONMapping, call: ToolCall) -> bool:
    """Return whether a person has to approve a refund."""
    return float(arguments["amount"]) > MAX_REFUND


@tool("issue-refund", title="Issue a refund", requires_approval=is_large_refund, at_most_once=True)
def issue_refund(order: str, amount: float, reason: str = "") -> str:
    """Refund an order. A person approves amounts above 100."""
    return f"Refunded {amount:.2f} for order {order}"


SHELVES = 8
SECONDS_PER_SHELF = 1.5


@tool("stock-count", title="Count the stock", background=True)
def stock_count(article: str) -> str:
    """Count an article shelf by shelf, which takes a while. It works in the background and reports how far it is."""
    for shelf in range(SHELVES):
        current().report_progress(shelf, SHELVES, f"Shelf {shelf + 1} of {SHELVES}")
        time.sleep(SECONDS_PER_SHELF)
    # Not random: the same article has the same stock, so that a repeated count agrees.
    count = sum(article.lower().encode()) % 90 + 10
    return f"{count} pieces of {article} on {SHELVES} shelves"


class DeliveryChoice(BaseModel):
    """The answer of a person to the question for a day."""

    day: Literal["Monday", "Wednesday", "Friday"]
    note: str = Field("", title="Note for the driver")


@tool("arrange-delivery", title="Arrange a delivery", resume_schema=DeliveryChoice)
def arrange_delivery(order: str) -> str:
    """Arrange the delivery of an order on a day that a person chooses."""
    answer = current().resume_data
    if answer is None:
        current().suspend({"question": f"On which day may order {order} be delivered?"})
    note = f", with a note for the driver: {answer['note']}" if answer.get("note") else ""
    return f"Order {order} is delivered on {answer['day']}{note}"
