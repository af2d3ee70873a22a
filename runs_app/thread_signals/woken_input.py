"""The input of a run that signals have woken: their texts, once the input processors of the agent have seen them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from agentcms.wire.json_types import JSONMapping, JSONObject
from memory_app.history.signal_markup import Signal, signal_text
from memory_app.history.signal_payloads import signal_of, signal_of_payload
from memory_app.history.thread_signals import stored_signals
from memory_app.models import Message
from runs_app.models import AgentRun
from runs_app.requests.messages import InputMessage

SIGNALS = "signals"  # in the input of a run that signals have woken: their IDs
HIDDEN_TEXT = "(The input processors have not seen this message.)"


def woken_messages(configuration: JSONMapping, signals: Sequence[Message]) -> list[JSONObject]:
    """Return signals as the messages of the run that they wake. Input processors of the agent replace their texts."""
    has_processors = bool(configuration.get("inputProcessors"))
    texts = [HIDDEN_TEXT if has_processors else prompt_text(signal_of(signal)) for signal in signals]
    return [{"role": "user", "content": text} for text in texts]


def prompt_text(signal: Signal) -> str:
    """Return the text of a signal, which is never blank: a message must have content."""
    return signal_text(signal) or " "


def save_in_input(run_id: UUID, payload: JSONMapping) -> None:
    """Store the processed text of a signal in the input of the run that it has woken."""
    run = AgentRun.objects.only("input").filter(pk=run_id).first()
    keys = run.input.get(SIGNALS) or [] if run is not None else []
    if run is None or payload["key"] not in keys:
        return
    messages = [*run.input["messages"]]
    index = keys.index(payload["key"])
    messages[index] = with_text_of(messages[index], signal_of_payload(payload))
    AgentRun.objects.filter(pk=run_id).update(input={**run.input, "messages": messages})


def messages_of_woken(run: AgentRun) -> list[InputMessage]:
    """Return the message with which a run begins that signals have woken. It takes them from its thread.

    The prompt only holds the place of the first one. Semantic recall searches for it.
    """
    last: JSONObject = run.input["messages"][-1]
    if run.thread_id is None:  # deleted meanwhile
        return [last]
    row = stored_signals(run.thread_id).filter(key=run.input[SIGNALS][-1]).first()
    return [last if row is None else with_text_of(last, signal_of(row))]


def with_text_of(message: JSONMapping, signal: Signal) -> JSONObject:
    """Return a message with the text of a signal as its content."""
    return {**message, "content": [{"type": "text", "text": prompt_text(signal)}]}
