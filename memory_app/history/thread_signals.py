"""Signals among the messages of a thread.

A signal waits until a run takes it: `seen_by` is then that run. Each change is made under the lock of the thread, so a
signal is seen once, and in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from memory_app.history.locks import lock_threads
from memory_app.history.message_data import derive_fields
from memory_app.history.messages import Author, NewMessage, SignalColumns, append_messages, reject_full_thread
from memory_app.history.signal_markup import Signal, signal_text
from memory_app.history.signal_payloads import ERROR, attribute_order, signal_of, signal_payload
from memory_app.history.turn_markup import find_turns
from memory_app.models import Message, Thread

QUEUED = "isQueued"  # in `delivery`: the signal waits for a run of its own
AFTER_RUN = "afterRun"  # in `delivery`: the active run that must not take the signal, because the next one shall
WAKES = "wakes"  # in `delivery`: a run begins if none is active
LOST_RUNS = "lostRuns"  # in `delivery`: the number of runs whose process died with the signal
NO_RUN = UUID(int=0)  # has seen a signal that no run will see


def stored_signals(thread_id: int) -> QuerySet[Message]:
    """Return the signals of a thread in order."""
    return Message.objects.filter(thread=thread_id, role=Message.Role.SIGNAL).order_by("number")


def waiting_signals(thread_id: int) -> QuerySet[Message]:
    """Return the signals of a thread that no run has seen, in order."""
    return stored_signals(thread_id).filter(seen_by=None)


def append_signal(thread: Thread, signal: Signal, author: Author, delivery: JSONObject) -> Message:
    """Append a signal to a locked thread. Raise Conflict if the thread is full."""
    reject_full_thread(thread, 1)
    attributes: JSONObject = {
        "signal": {"type": signal.type, "tagName": signal.tag_name, "attributes": dict(signal.attributes)},
        **attribute_order(signal.attributes),
    }
    if signal.metadata:
        attributes["metadata"] = dict(signal.metadata)
    columns = SignalColumns(signal.contents.strip(), delivery)
    message = NewMessage(prompt_data(signal), key=signal.id, attributes=attributes, signal=columns)
    return append_messages(thread, [message], author=author)[0]


def prompt_data(signal: Signal) -> JSONObject:
    """Return a signal in the JSON of pydantic-ai, as later runs remember it."""
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": signal_text(signal)}]}


def wire_signal(message: Message) -> JSONObject:
    """Return a signal under wire names."""
    signal = signal_of(message)
    return {
        "id": message.key,
        "type": signal.type,
        "tagName": signal.tag,
        "contents": signal.contents,
        "createdAt": format_timestamp(message.created_at),
        **({"attributes": signal.attributes} if signal.attributes else {}),
        **({"metadata": signal.metadata} if signal.metadata else {}),
    }


def take_signals(thread_id: int, run_id: UUID, known: Collection[str]) -> list[JSONObject]:
    """Give the signals that wait to a run, and return those whose keys the run does not know, as JSON.

    A run whose process died before it recorded them asks again with the same keys.
    """
    candidates = stored_signals(thread_id).filter(Q(seen_by=None) | Q(seen_by=run_id)).exclude(key__in=known)
    # Most steps find none, so look before locking.
    if not candidates.exists():
        return []
    with transaction.atomic():
        thread = Thread.objects.select_for_update(of=("self",)).filter(pk=thread_id).first()
        if thread is None:
            return []
        # Read again under the lock: another run may have taken some meanwhile.
        taken = [row for row in candidates if row.seen_by == run_id or is_for_run(row, run_id)]
        claim_signals(taken, run_id)
        turns = find_turns(thread)
        return [signal_payload(row, turns.turn_of(row)) for row in taken]


def is_for_run(signal: Message, run_id: UUID) -> bool:
    """Return whether a run that is active may take a signal that waits."""
    delivery = signal.delivery or {}
    return not delivery.get(QUEUED) and delivery.get(AFTER_RUN) != str(run_id)


def claim_signals(rows: Iterable[Message], run_id: UUID) -> None:
    """Note the run that sees these signals. The caller has locked their thread."""
    Message.objects.filter(pk__in=[row.pk for row in rows], seen_by=None).update(seen_by=run_id)


def save_processed_signal(thread_id: int, key: str, contents: str, attributes: JSONObject) -> None:
    """Replace the text and the attributes of a signal by what the input processors made of them."""
    # Without the lock of the thread: only the run that has taken a signal changes these columns.
    row = stored_signals(thread_id).filter(key=key).first()
    if row is None:
        return
    original = signal_of(row)
    signal = Signal(original.type, contents, original.id, attributes, original.metadata, original.tag_name)
    stored = (row.attributes or {}).get("signal") or {}
    row.attributes = {**(row.attributes or {}), "signal": {**stored, "attributes": attributes}}
    row.text, row.data = contents, prompt_data(signal)
    row.tokens = derive_fields(row.data).tokens
    row.save(update_fields=["attributes", "text", "data", "tokens"])


def release_signals(thread_id: int, run_id: UUID, max_lost_runs: int) -> None:
    """Let signals wait again that a run took before its process died, unless as many runs have lost them already.

    A run that has stored its messages has answered its signals.
    """
    if Message.objects.filter(thread=thread_id, run_id=run_id).exists():
        return
    for row in stored_signals(thread_id).filter(seen_by=run_id):
        delivery = row.delivery or {}
        lost_runs = delivery.get(LOST_RUNS, 0) + 1
        row.delivery = {**delivery, LOST_RUNS: lost_runs}
        if lost_runs < max_lost_runs:
            row.seen_by = None
        else:
            row.delivery[ERROR] = f"The server process stopped {lost_runs} times while a run worked on this."
        row.save(update_fields=["delivery", "seen_by"])


def refuse_signals(rows: Sequence[Message], reason: str) -> None:
    """Note why no run will see these signals, so that they wait no longer."""
    for row in rows:
        row.seen_by, row.delivery = NO_RUN, {**(row.delivery or {}), ERROR: reason}
    Message.objects.bulk_update(rows, ["seen_by", "delivery"])


def take_over_signals(thread_id: int, keys: Collection[str], run_id: UUID, open_runs: Collection[UUID]) -> None:
    """Record that a run saw signals that failed runs had taken: its input processors have processed them.

    Signals of the open runs stay theirs.
    """
    if not keys:
        return
    with transaction.atomic():
        lock_threads([thread_id])
        stored_signals(thread_id).filter(key__in=keys).exclude(seen_by__in=open_runs).update(seen_by=run_id)
