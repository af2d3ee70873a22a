"""Recall among many messages, the window of a long thread, signals, and the memory of a process that embeds.

    python -m benchmarks.memory [--messages 100000] [--json]

Measures one process without the web server, on a temporary SQLite or on DATABASE_URL.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.durable import prepare

if TYPE_CHECKING:
    from memory_app.models import Resource, Thread

SMALL, MEDIUM, LARGE = 1000, 20_000, 100_000  # messages of a resource
GOALS = {SMALL: 15, MEDIUM: 120}
PGVECTOR_GOAL = 20
DIMENSIONS = 512
MESSAGES_OF_THREAD = 500  # of a resource
ROWS_AT_ONCE = 2000
ROUNDS = 15  # of which the least counts: other programs on the machine can only add to it
QUESTION = "Which of the hotels near the station did we like best, and what did the room cost?"
WORDS_OF_MESSAGE = "message {number} of a long conversation about trips, rooms, trains and what they cost"
TOKENS_OF_MESSAGE = 21
SIGNALS_OF_THREAD = 50
SIGNAL_THREADS = 8
EMBEDDERS = ("local/multilingual", "local/minilm")
LOAD_AND_EMBED = """
import json, psutil, sys
from agentcms.vectors import find_embedder
process = psutil.Process()
before = process.memory_info().rss
find_embedder(sys.argv[1]).embed(["word " * 200] * 20, "document")
print(json.dumps([before / 1e6, process.memory_info().rss / 1e6]))
"""

Figures = dict[str, float]


# --- Data


def fill(count: int) -> dict[int, Resource]:
    """Create a small, a medium and a large resource with messages and their vectors. Return them by size."""
    return {size: filled_resource(size) for size in (SMALL, MEDIUM, LARGE) if size <= count}


def filled_resource(size: int) -> Resource:
    from memory_app.models import Resource

    resource = Resource.objects.create(realm="obench", key=f"r{size}")
    for start in range(0, size, MESSAGES_OF_THREAD):
        filled_thread(resource, f"{size}-{start}", min(MESSAGES_OF_THREAD, size - start))
    return resource


def filled_thread(resource: Resource, key: str, size: int) -> Thread:
    from memory_app.models import Message, Thread, Vector

    columns = {"realm": resource.realm, "resource": resource, "resource_key": resource.key, "last_number": size}
    thread = Thread.objects.create(key=key, agent_key="bench", **columns)
    messages = Message.objects.bulk_create([message_row(thread, n) for n in range(1, size + 1)], ROWS_AT_ONCE)
    Vector.objects.bulk_create(vector_rows(thread, messages), ROWS_AT_ONCE)
    return thread


def message_row(thread: Thread, number: int) -> Any:
    from memory_app.models import Message

    text = WORDS_OF_MESSAGE.format(number=number)
    is_user = number % 2
    part = {"part_kind": "user-prompt" if is_user else "text", "content": text}
    return Message(
        thread=thread,
        number=number,
        head_number=number,
        key=f"m{number}",
        role="user" if is_user else "assistant",
        data={"kind": "request" if is_user else "response", "parts": [part]},
        text=text,
        tokens=TOKENS_OF_MESSAGE,
    )


def vector_rows(thread: Thread, messages: list[Any]) -> Iterator[Any]:
    import numpy as np

    from agentcms.vectors.quantize import pack_vector
    from memory_app.models import Vector

    rows = np.random.default_rng(thread.pk).normal(size=(len(messages), DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for message, packed in zip(messages, map(pack_vector, rows), strict=True):
        columns = {"part": 0, "embedder": EMBEDDERS[0], "resource_id": thread.resource_id, "thread": thread}
        yield Vector(message=message, scale=packed.scale, data=packed.data, **columns)


# --- Measuring


def least(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the least milliseconds, and the least CPU milliseconds of this process, of several calls."""
    walls, cpus = [], []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return min(walls), min(cpus)


def measure_recalls(resources: dict[int, Resource], how: str, goals: dict[int, int]) -> Figures:
    from memory_app.recall.search import embed_question, recall_messages, vectors_of_resource

    def recall(resource: Resource) -> None:
        vectors = vectors_of_resource(resource.pk, EMBEDDERS[0])
        assert len(recall_messages(vectors, embed_question(EMBEDDERS[0], QUESTION), 4, before=1, after=1)) == 4

    figures: Figures = {}
    for size, resource in resources.items():
        wall, cpu = least(lambda resource=resource: recall(resource))  # type: ignore[misc]
        goal = f" (goal {goals[size]})" if size in goals else ""
        figures[f"recall among {size:,} messages of a resource, {how}, CPU of this process, ms{goal}"] = cpu
        figures[f"the same, {how}, {size:,}, ms"] = wall
    return figures


def measure_embedding() -> Figures:
    from memory_app.recall.search import embed_question

    return {"embedding of a question alone, CPU, ms": least(lambda: embed_question(EMBEDDERS[0], QUESTION))[1]}


def measure_pgvector(resources: dict[int, Resource]) -> Figures:
    from django.core.management import call_command

    started = time.perf_counter()
    call_command("use_pgvector", stdout=io.StringIO())
    seconds = time.perf_counter() - started
    goals = dict.fromkeys((SMALL, MEDIUM), PGVECTOR_GOAL)
    return {"use_pgvector on all of them, s": seconds, **measure_recalls(resources, "pgvector", goals)}


def measure_windows() -> Figures:
    """Return what the window of a long thread costs, and how large it is."""
    from memory_app.history.messages import load_messages
    from memory_app.models import Observation, Resource
    from memory_app.observational.limits import ObservationLimits
    from memory_app.observational.observations_for_run import open_window

    thread = filled_thread(Resource.objects.create(realm="obench", key="window"), "window", MEDIUM)
    figures = {
        "last 10 messages of 20,000, CPU, ms": least(lambda: load_messages(thread.pk, 10, 8000))[1],
        "last 1,000 messages of 20,000, at most 8,000 tokens, CPU, ms": least(
            lambda: load_messages(thread.pk, 1000, 8000)
        )[1],
    }
    columns = {"thread": thread, "is_active": True, "tokens": 400, "message_tokens": 4200}
    Observation.objects.bulk_create(
        Observation(first=start, last=start + 199, text="An observation of this part.\n" * 55, **columns)
        for start in range(1, MEDIUM - 1000, 200)
    )
    limits = ObservationLimits(30_000, 6000, 6000, 36_000, 40_000)
    window = open_window(thread.pk, limits)
    figures["window with observations of 19,000 messages, CPU, ms"] = least(lambda: open_window(thread.pk, limits))[1]
    figures["tokens of it"] = window.log.tokens + window.raw_tokens
    figures["tokens of all messages"] = MEDIUM * TOKENS_OF_MESSAGE
    return figures


def measure_signals() -> Figures:
    """Return how many signals a second one process stores, one after the other."""
    from django.contrib.auth import get_user_model

    from agents_app.models import Agent
    from memory_app.history.signal_markup import Signal
    from memory_app.history.threads import create_named_thread
    from memory_app.realms import memory_caller
    from runs_app.resolution import stored_agents
    from runs_app.thread_signals.sending import IfIdle, send_signal

    user = get_user_model().objects.create_superuser("bench")
    Agent(id="bench", name="Bench", instructions="", model={"provider": "demo", "name": "echo"}).save()
    agent = stored_agents.get("bench")
    threads = [create_named_thread(memory_caller(user), f"s{n}", "signals") for n in range(SIGNAL_THREADS)]
    started, cpu = time.perf_counter(), time.process_time()
    for number in range(SIGNALS_OF_THREAD):
        for thread in threads:
            signal = Signal("notification", "The flight is late.", id=f"n{number}", attributes={"source": "airline"})
            send_signal(thread, signal, user=user, agent=agent, if_idle=IfIdle.PERSIST)
    count = SIGNALS_OF_THREAD * SIGNAL_THREADS
    return {
        "signals a second, stored by one process": count / (time.perf_counter() - started),
        "CPU of a signal, ms": (time.process_time() - cpu) * 1000 / count,
    }


def measure_processes() -> Figures:
    """Return the memory of a process that embeds, with what it has before."""
    figures: Figures = {}
    for name in EMBEDDERS:
        command = [sys.executable, "-c", LOAD_AND_EMBED, name]
        before, after = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        figures[f"memory of a process that embeds with {name}, MB"] = after
        figures[f"of it the model, {name}, MB"] = after - before
    return figures


def measure(count: int) -> Figures:
    from django.db import connection

    resources = fill(count)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    figures = measure_embedding() | measure_recalls(resources, "numpy", GOALS)
    if connection.vendor == "postgresql":
        figures |= measure_pgvector(resources)
    return (
        figures
        | measure_windows()
        | measure_signals()
        | measure_processes()
        | {"load of the machine by all programs": os.getloadavg()[0]}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=LARGE, help="messages of the largest resource")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    folder = prepare()
    try:
        figures = measure(options.messages)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        json.dumps(figures) if options.json else "\n".join(f"{value:10.1f}  {name}" for name, value in figures.items())
    )


if __name__ == "__main__":
    main()
