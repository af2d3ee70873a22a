"""A model that follows a plan, and tools that note each call, so that tests can count them across processes."""

import asyncio
import json
import os
import time
from importlib import import_module
from pathlib import Path

from celery.signals import worker_init

from agents_app.registry import Entry, Kind, registry, tool
from runs_app.calling import current


def folder() -> Path:
    """Return the folder of the notes and gates of a test."""
    return Path(os.environ["DURABLE_FOLDER"])


def note(text: str) -> None:
    """Append a line to the notes."""
    with (folder() / "notes").open("a") as notes:
        notes.write(f"{text}\n")


def wait_for_gate(name: str) -> None:
    """Wait until a test opens a gate."""
    deadline = time.monotonic() + 60
    while name and not (folder() / f"{name}.open").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def planned_model(name, choice):
    """Return a model that calls tools and answers as the `plan` of an agent says, one entry for each request.

    An entry is a text, or a list of calls: the name of the tool and its arguments. With `gates`, the answer waits in
    the middle of the text of that entry. With `call_id`, all calls have this ID. With `notes_prompt`, each request is
    noted with the prompt, and with `notes_choice` with the choice of tools. With `on_result`, the model answers so to
    the results of background tasks, which may come at any moment.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    plan, gates, on_result = choice["plan"], choice.get("gates", {}), choice.get("on_result")

    def is_prompt(message):
        return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)

    async def answer(messages, info):
        start = max(index for index, message in enumerate(messages) if is_prompt(message))
        number = sum(isinstance(message, ModelResponse) for message in messages[start:])
        note(f"model {number}")
        if choice.get("notes_prompt"):
            note(f"request {messages[start].parts[-1].content} {number}")
        if choice.get("notes_choice"):
            note(f"choice {number} {(info.model_settings or {}).get('tool_choice')}")
        if on_result and "<background-task " in str(messages[start].parts):
            yield on_result
            return
        entry = plan[min(number, len(plan) - 1)]
        if isinstance(entry, list):
            calls = enumerate(entry)
            yield {
                index: DeltaToolCall(
                    name, json.dumps(arguments), tool_call_id=choice.get("call_id") or f"c{number}-{index}"
                )
                for index, (name, arguments) in calls
            }
            return
        words = entry.split(" ")
        for index, word in enumerate(words):
            yield word if index == len(words) - 1 else f"{word} "
            if index == 0 and str(number) in gates:
                await asyncio.to_thread(wait_for_gate, gates[str(number)])

    return FunctionModel(stream_function=answer, model_name=name)


def register() -> None:
    """Register the model and the tools."""
    registry.add(Entry(Kind.MODEL_PROVIDER, "planned", "Planned", target=planned_model))

    @tool("count")
    def count(number: int, gate: str = "", result: str = "", pause: float = 0) -> str:
        """Note the call, wait for a gate or some seconds, and note the end."""
        note(f"tool {number} begins")
        wait_for_gate(gate)
        time.sleep(pause)
        note(f"tool {number} ends")
        return result or f"result {number}"

    @tool("work")
    def work(pause: float = 0) -> str:
        """Note the call with the process that executes it, work for some seconds, and note the end."""
        key = current().idempotency_key
        note(f"work {key} begins in {os.getpid()}")
        time.sleep(pause)
        note(f"work {key} ends in {os.getpid()}")
        return "Done."

    @tool("block-loop")
    async def block_loop() -> str:
        """Block the event loop of the first process that calls this."""
        note("block-loop begins")
        if current().attempt == 1:
            time.sleep(60)
        return "Done."

    @tool("count-once", at_most_once=True)
    def count_once(number: int, gate: str = "") -> str:
        """Do as `count`, but never twice."""
        return count(number, gate)

    @tool("call-facts")
    def call_facts(gate: str = "") -> dict[str, object]:
        """Return what the tool knows about its call."""
        call = current()
        note(f"attempt {call.attempt} {call.idempotency_key}")
        wait_for_gate(gate)
        return {"attempt": call.attempt, "key": call.idempotency_key}

    @tool("break")
    def fail(number: int) -> str:
        """Fail."""
        note(f"tool {number} fails")
        raise ValueError("The tool is broken.")

    @tool("refund", requires_approval=True)
    def refund(order: str, amount: float) -> str:
        """Note a refund."""
        note(f"refund {order} {amount:g} {current().idempotency_key.partition(':')[2]}")
        return f"{amount:g} refunded"

    @tool("pay-once", requires_approval=True, at_most_once=True)
    def pay_once(order: str, pause: float = 0) -> str:
        """Note a payment, which nobody may make twice, and its end."""
        key = current().idempotency_key
        note(f"pay {key} begins")
        time.sleep(pause)
        note(f"pay {key} ends")
        return f"{order} paid"

    @tool("ask-person", resume_schema={"type": "object", "properties": {"size": {"type": "string"}}})
    def ask_person(question: str, again: str = "") -> str:
        """Ask a person, or two questions in turn."""
        data = current().resume_data
        note(f"ask {data} {current().idempotency_key.partition(':')[2]}")
        if data is None:
            return current().suspend({"question": question})
        if again and data.get("size") != again:
            return current().suspend({"question": f"Really {data['size']}?"})
        return f"Size {data['size']}"


if os.environ.get("DJANGO_SETTINGS_MODULE") == "tests.durable.settings":
    register()
    if os.environ.get("RUN_ENGINE") == "celery":
        worker_init.connect(lambda **kwargs: import_module("tests.durable.kill_points").install(), weak=False)
