"""Streams of runs: parsing, callbacks, and reconnection after the last event that arrived."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from agentcms_client.calls import CALLS
from agentcms_client.json_types import JSONObject
from agentcms_client.requests import Call
from agentcms_client.responses import parse_response, response_error
from agentcms_client.retries import Attempts, retry_delay

Chunk = JSONObject  # an event as the server sends it, with its `number`
Callback = Callable[[Any], Any]  # of the asynchronous client: a function or a coroutine function

WAITING_TYPES = ("tool-call-approval", "tool-call-suspended")
ABORT_ERROR = {"name": "AbortError", "message": "The run was stopped."}
ENDED_MESSAGE = "The stream ended before the run was over."
CUT_MESSAGE = "The stream ended in the middle of an event."


@dataclass
class Callbacks:
    """Functions that are called with the events of a run, in order, and once for each."""

    on_chunk: Callback | None = None  # each event
    on_step_finish: Callback | None = None  # the payload of each finished step
    on_finish: Callback | None = None  # the payload of the end
    on_error: Callback | None = None  # the error of a run that failed or was stopped
    on_suspended: Callback | None = None  # `{"runId", "toolCalls"}` of a run that waits for people


@dataclass
class StreamedRun:
    """Facts about a run from its stream."""

    run_id: str = ""
    last_event: int = 0  # the number of the last event, from which `observe` continues
    text: str = ""  # of the last step
    finish_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    error: JSONObject | None = None
    tool_calls: list[JSONObject] = field(default_factory=list)  # for which the run waits

    @property
    def is_suspended(self) -> bool:
        """True if the run waits for people."""
        return self.finish_reason == "suspended"


class EventLines:
    """The lines of the event that is being read. It is complete with the blank line after it.

    A proxy may end a response as if it were complete although its server died in the middle of a line.
    """

    def __init__(self) -> None:
        self.number = ""
        self.data = ""

    def add(self, line: str) -> tuple[str, str] | None:
        """Return the number and the data of the event that a line completes, or None. The number may be blank."""
        if line.startswith("id: "):
            self.number = line.removeprefix("id: ")
        elif line.startswith("data: "):
            # A whole chunk: httpx ends a line also at characters such as U+2028, and the server sends ASCII only.
            self.data = line.removeprefix("data: ")
        elif not line:
            event, self.number, self.data = (self.number, self.data), "", ""
            return event if event[1] else None
        return None

    def require_complete(self) -> None:
        """Raise ReadError if the lines end in the middle of an event."""
        if self.number or self.data:
            raise httpx.ReadError(CUT_MESSAGE)


class StreamReader:
    """The state of one stream over several connections."""

    def __init__(self, run: StreamedRun) -> None:
        self.run = run
        self.is_done = False
        self.failed_attempts = 0  # since the last event
        self._lines = EventLines()
        self._texts: list[tuple[int, str]] = []  # the pieces of the last step with their numbers

    def accept(self, response: httpx.Response) -> None:
        """Begin to read a response."""
        self.run.run_id = response.headers.get("X-Run-ID", self.run.run_id)
        self._lines = EventLines()  # the last connection may have ended in the middle of an event

    def parse_line(self, line: str) -> Chunk | None:
        """Return the event that a line completes, or None. Events that arrived before are left out."""
        if (event := self._lines.add(line)) is None:
            return None
        number, data = int(event[0]) if event[0] else None, event[1]
        if data == "[DONE]":
            self.is_done = True
            return None
        if number is not None and number <= self.run.last_event:
            return None
        self.failed_attempts = 0
        chunk: Chunk = json.loads(data)
        if number is not None:  # copies of earlier events have no number
            self.run.last_event = number
            chunk["number"] = number
        self._note(chunk, self.run.last_event)
        return chunk

    def _note(self, chunk: Chunk, number: int) -> None:
        """Update what is known about the run."""
        kind, payload, run = chunk["type"], chunk.get("payload") or {}, self.run
        run.run_id = run.run_id or chunk.get("runId", "")
        if run.is_suspended:  # somebody decided
            run.finish_reason, run.tool_calls = "", []
        if kind == "step-start":
            self._texts, run.text = [], ""
        elif kind == "step-discarded":
            self._texts = [piece for piece in self._texts if piece[0] < payload["fromEvent"]]
            run.text = "".join(text for _, text in self._texts)
        elif kind == "text-delta":
            self._texts.append((number, payload["text"]))
            run.text += payload["text"]
        elif kind in WAITING_TYPES:
            run.tool_calls.append(payload)
        elif kind == "suspended":
            run.finish_reason = kind
        elif kind in ("finish", "error", "abort"):
            self._note_end(kind, payload)

    def _note_end(self, kind: str, payload: JSONObject) -> None:
        run = self.run
        run.finish_reason = payload.get("stepResult", {}).get("reason", "") if kind == "finish" else kind
        run.usage = payload.get("usage") or payload.get("output", {}).get("usage") or {}
        if kind != "finish":
            run.error = payload.get("error") or ABORT_ERROR

    def calls(self, chunk: Chunk, callbacks: Callbacks) -> Iterator[tuple[Callback, Any]]:
        """Yield the callbacks of an event with their arguments."""
        kind, payload = chunk["type"], chunk.get("payload") or {}
        suspension = {"runId": self.run.run_id, "toolCalls": list(self.run.tool_calls)}
        pairs = [
            (True, callbacks.on_chunk, chunk),
            (kind == "step-finish", callbacks.on_step_finish, payload),
            (kind == "finish", callbacks.on_finish, payload),
            (kind in ("error", "abort"), callbacks.on_error, self.run.error),
            (kind == "suspended", callbacks.on_suspended, suspension),
        ]
        for applies, callback, argument in pairs:
            if applies and callback is not None:
                yield callback, argument

    def next_call(self, call: Call) -> Call:
        """Return the request that continues the stream: the first one again until the run is known."""
        return CALLS.follow_run(self.run.run_id, self.run.last_event) if self.run.run_id else call

    def delay(self, response: httpx.Response | None) -> float | None:
        """Return the seconds to wait before the next connection, or None if there were too many failed attempts."""
        seconds = retry_delay(response, self.failed_attempts)
        self.failed_attempts += 1
        return seconds


def read_events(http: httpx.Client, call: Call, reader: StreamReader) -> Iterator[Chunk]:
    """Yield the events of a run until it is finished or waits for people. Raise ApiError or httpx.TransportError."""
    while not reader.is_done:
        response: httpx.Response | None = None
        error: httpx.TransportError = httpx.ReadError(ENDED_MESSAGE)
        try:
            with http.stream(**call.request_kwargs()) as response:
                if response.is_success:
                    reader.accept(response)
                    for line in response.iter_lines():
                        if (chunk := reader.parse_line(line)) is not None:
                            yield chunk
                    response = None  # as after a lost connection: by its status 200, it would not be read again
                else:
                    response.read()  # for the error, which has the body; httpx does not read that of a stream
        except httpx.TransportError as lost:
            response, error = None, lost
        if reader.is_done:
            return
        if (seconds := reader.delay(response)) is None:
            if response is not None:
                parse_response(response)  # raises
            raise error
        time.sleep(seconds)
        call = reader.next_call(call)


async def read_events_async(http: httpx.AsyncClient, call: Call, reader: StreamReader) -> AsyncGenerator[Chunk, None]:
    """Yield the events of a run like `read_events`."""
    while not reader.is_done:
        response: httpx.Response | None = None
        error: httpx.TransportError = httpx.ReadError(ENDED_MESSAGE)
        try:
            async with http.stream(**call.request_kwargs()) as response:
                if response.is_success:
                    reader.accept(response)
                    async for line in response.aiter_lines():
                        if (chunk := reader.parse_line(line)) is not None:
                            yield chunk
                    response = None  # as after a lost connection: by its status 200, it would not be read again
                else:
                    await response.aread()  # for the error, which has the body; httpx does not read that of a stream
        except httpx.TransportError as lost:
            response, error = None, lost
        if reader.is_done:
            return
        if (seconds := reader.delay(response)) is None:
            if response is not None:
                parse_response(response)  # raises
            raise error
        await asyncio.sleep(seconds)
        call = reader.next_call(call)


def read_run(http: httpx.Client, call: Call, run: StreamedRun, callbacks: Callbacks) -> StreamedRun:
    """Read a stream to its end and call the callbacks. Their exceptions end the reading, and not the run."""
    reader = StreamReader(run)
    for chunk in read_events(http, call, reader):
        for callback, argument in reader.calls(chunk, callbacks):
            callback(argument)
    return run


async def read_run_async(http: httpx.AsyncClient, call: Call, run: StreamedRun, callbacks: Callbacks) -> StreamedRun:
    """Read a stream like `read_run`. Callbacks may be coroutine functions."""
    reader = StreamReader(run)
    # An asynchronous generator that is left keeps its connection until the garbage collection.
    async with aclosing(read_events_async(http, call, reader)) as chunks:
        async for chunk in chunks:
            for callback, argument in reader.calls(chunk, callbacks):
                result = callback(argument)
                if inspect.isawaitable(result):
                    await result
    return run


def parse_thread_line(lines: EventLines, line: str) -> Chunk | None:
    """Return the event of the stream of a thread that a line completes, or None."""
    event = lines.add(line)
    return json.loads(event[1]) if event is not None and event[1] != "[DONE]" else None


def read_thread(http: httpx.Client, call: Call) -> Iterator[Chunk]:
    """Yield the events of a thread until the server closes the stream. Raise ApiError or httpx.TransportError.

    The request is repeated like others until the stream is open. A stream that is lost later raises an error, because
    the events in between would be missing.
    """
    attempts, is_open, lines = Attempts(call), False, EventLines()
    while True:
        try:
            with http.stream(**call.request_kwargs()) as response:
                if is_open := response.is_success:
                    yield from filter(None, map(partial(parse_thread_line, lines), response.iter_lines()))
                    lines.require_complete()
                    return
                response.read()
        except httpx.TransportError as error:
            if is_open or (seconds := attempts.pause_after_error(error)) is None:
                raise
        else:
            if (seconds := attempts.pause_after_response(response)) is None:
                raise response_error(response)
        time.sleep(seconds)


async def read_thread_async(http: httpx.AsyncClient, call: Call) -> AsyncGenerator[Chunk, None]:
    """Yield the events of a thread like `read_thread`."""
    attempts, is_open, lines = Attempts(call), False, EventLines()
    while True:
        try:
            async with http.stream(**call.request_kwargs()) as response:
                if is_open := response.is_success:
                    async for line in response.aiter_lines():
                        if (chunk := parse_thread_line(lines, line)) is not None:
                            yield chunk
                    lines.require_complete()
                    return
                await response.aread()
        except httpx.TransportError as error:
            if is_open or (seconds := attempts.pause_after_error(error)) is None:
                raise
        else:
            if (seconds := attempts.pause_after_response(response)) is None:
                raise response_error(response)
        await asyncio.sleep(seconds)
