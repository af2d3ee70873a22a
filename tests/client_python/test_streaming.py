"""Streams of the Python client: callbacks, lost connections, and other processes."""

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing

import httpx
import pytest
from agentcms_client import AsyncClient
from agentcms_client.calls import CALLS
from agentcms_client.streaming import StreamedRun, StreamReader

from tests.client_python.test_python_client import (  # noqa: F401  two are fixtures
    HERE,
    ApiError,
    BlockingClient,
    ScriptedTransport,
    answer,
    client,
    pauses,
)
from tests.served import Served

RUN = "0198a6c2-7c1e-7d3a-9f00-5b1f8d2c4e6a"
FINISH = ("finish", {"stepResult": {"reason": "stop"}, "usage": {"totalTokens": 7}})
CHUNKS = [
    ("start", {}),
    ("step-start", {}),
    ("text-delta", {"id": "1", "text": "Good "}),
    ("text-delta", {"id": "1", "text": "day."}),
    ("step-finish", {"output": {"text": "Good day."}}),
    FINISH,
]
APPROVAL = ("tool-call-approval", {"toolCallId": "c1", "toolName": "refund", "args": {"amount": 250}})


def blocks(chunks, first=1):
    """Return these chunks as server-sent events."""
    return b"".join(
        b"id: %d\ndata: %s\n\n" % (number, json.dumps({"type": kind, "runId": RUN, "payload": payload}).encode())
        for number, (kind, payload) in enumerate(chunks, first)
    )


class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A response body whose connection is lost after its content."""

    def __init__(self, content):
        self.content = content

    def __iter__(self):
        yield self.content
        raise httpx.ReadError("lost")

    async def __aiter__(self):
        yield self.content
        raise httpx.ReadError("lost")


def stream(chunks, first=1, *, done=True, lost=False):
    content = blocks(chunks, first) + (b"data: [DONE]\n\n" if done else b"")
    headers = {"Content-Type": "text/event-stream", "X-Run-ID": RUN}
    return httpx.Response(200, headers=headers, **({"stream": Broken(content)} if lost else {"content": content}))


def cut_stream(part):
    """Return a stream that ends in the middle of its third event, as if it were complete."""
    return httpx.Response(200, headers={"X-Run-ID": RUN}, content=blocks(CHUNKS[:2]) + part)


class Recorder:
    """The five callbacks, which record their calls."""

    def __init__(self):
        self.calls = []

    def callbacks(self):
        def record(name):
            return lambda value: self.calls.append((name, value))

        return {name: record(name) for name in ("on_chunk", "on_step_finish", "on_finish", "on_error", "on_suspended")}

    def of(self, name):
        return [value for called, value in self.calls if called == name]

    def names(self):
        return [name for name, _ in self.calls if name != "on_chunk"]


def test_callbacks_get_each_event_once_and_in_order(client):  # noqa: F811
    cms, _ = client(stream(CHUNKS))
    seen = Recorder()

    run = cms.stream("concierge", "Hello", **seen.callbacks())

    assert [chunk["number"] for chunk in seen.of("on_chunk")] == [1, 2, 3, 4, 5, 6]
    assert [chunk["type"] for chunk in seen.of("on_chunk")] == [kind for kind, _ in CHUNKS]
    assert seen.calls[-3:] == [
        ("on_step_finish", CHUNKS[4][1]),
        ("on_chunk", {"type": "finish", "runId": RUN, "payload": FINISH[1], "number": 6}),
        ("on_finish", FINISH[1]),
    ]
    assert (run.run_id, run.text, run.finish_reason, run.usage, run.last_event) == (
        RUN,
        "Good day.",
        "stop",
        {"totalTokens": 7},
        6,
    )


@pytest.mark.parametrize("count", range(7))
def test_a_stream_that_drops_anywhere_continues_after_the_last_event(client, pauses, count):  # noqa: F811
    cms, script = client(stream(CHUNKS[:count], done=False, lost=True), stream(CHUNKS[count:], count + 1))
    seen = Recorder()

    run = cms.stream("concierge", "Hello", **seen.callbacks())

    assert [chunk["number"] for chunk in seen.of("on_chunk")] == [1, 2, 3, 4, 5, 6]
    assert seen.names() == ["on_step_finish", "on_finish"]
    assert run.text == "Good day."
    again = script.requests[1]
    assert (again.method, again.url.path) == ("GET", f"/api/runs/{RUN}/stream")
    assert again.headers["Last-Event-ID"] == str(count)


def test_a_stream_that_ends_without_done_is_read_again(client):  # noqa: F811
    cms, _ = client(stream(CHUNKS[:2], done=False), stream(CHUNKS[1:], 2))  # event 2 arrives twice
    seen = Recorder()

    cms.stream("concierge", "Hello", **seen.callbacks())

    assert [chunk["number"] for chunk in seen.of("on_chunk")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("part", [b"id: ", b"id: 3", b'id: 3\ndata: {"type": "text-de', b"id: 3\ndata: {}"])
def test_a_stream_that_ends_in_the_middle_of_an_event_is_read_again(client, part):  # noqa: F811
    cms, script = client(cut_stream(part), stream(CHUNKS[2:], 3))
    seen = Recorder()

    assert cms.stream("concierge", "Hello", **seen.callbacks()).text == "Good day."

    assert [chunk["number"] for chunk in seen.of("on_chunk")] == [1, 2, 3, 4, 5, 6]
    assert script.requests[1].headers["Last-Event-ID"] == "2"


def test_a_lost_first_response_repeats_the_request_with_its_key(client):  # noqa: F811
    cms, script = client(httpx.ConnectError("lost"), stream(CHUNKS))

    cms.stream("concierge", "Hello", temperature=0.2)

    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1
    assert json.loads(script.requests[1].content) == {"messages": "Hello", "temperature": 0.2}


def test_the_client_gives_up_if_no_connection_brings_an_event(client, pauses):  # noqa: F811
    cms, script = client(*(stream([], done=False, lost=True) for _ in range(9)))

    with pytest.raises(httpx.ReadError):
        cms.observe(RUN)

    assert (len(script.requests), len(pauses)) == (5, 4)


def test_a_refused_stream_raises(client):  # noqa: F811
    cms, script = client(answer(404, {"error": "Run not found", "code": "not_found"}))

    with pytest.raises(ApiError) as refused:
        cms.observe(RUN, 3)

    assert (refused.value.code, script.requests[0].headers["Last-Event-ID"]) == ("not_found", "3")


def test_too_many_streams_are_retried(client, pauses):  # noqa: F811
    cms, _ = client(answer(429, Retry_After="2"), stream(CHUNKS))

    assert cms.stream("concierge", "Hello").text == "Good day."
    assert pauses == [2]


def test_a_failed_and_a_stopped_run_call_on_error(client):  # noqa: F811
    reason = {"name": "Error", "message": "No model."}
    cms, _ = client(stream([("error", {"error": reason})]), stream([("abort", {})]))
    seen = Recorder()

    failed, stopped = (cms.stream("concierge", "Hello", **seen.callbacks()) for _ in range(2))

    assert seen.names() == ["on_error", "on_error"]
    assert (failed.finish_reason, failed.error) == ("error", reason)
    assert (stopped.finish_reason, stopped.error["name"]) == ("abort", "AbortError")


def test_a_suspended_run_calls_on_suspended_with_the_waiting_calls(client):  # noqa: F811
    cms, _ = client(stream([("start", {}), APPROVAL, ("suspended", {})]))
    seen = Recorder()

    run = cms.stream("concierge", "Refund 250", **seen.callbacks())

    assert seen.of("on_suspended") == [{"runId": RUN, "toolCalls": [APPROVAL[1]]}]
    assert (run.is_suspended, run.tool_calls) == (True, [APPROVAL[1]])


def test_a_run_read_over_a_decision_is_not_suspended(client):  # noqa: F811
    cms, _ = client(stream([APPROVAL, ("suspended", {}), *CHUNKS[1:]]))
    seen = Recorder()

    run = cms.observe(RUN, **seen.callbacks())

    assert seen.names() == ["on_suspended", "on_step_finish", "on_finish"]
    assert (run.is_suspended, run.tool_calls, run.text) == (False, [], "Good day.")


def test_a_repeated_answer_replaces_the_pieces_before(client):  # noqa: F811
    pieces = [CHUNKS[1], ("text-delta", {"text": "Good ev"}), ("step-discarded", {"fromEvent": 2}), *CHUNKS[2:]]
    cms, _ = client(stream(pieces))

    assert cms.stream("concierge", "Hello").text == "Good day."


def test_each_piece_of_a_long_text_is_joined_once():
    reader = StreamReader(StreamedRun())
    lines = blocks([("step-start", {}), *[("text-delta", {"text": "ab"})] * 1000]).decode().splitlines()
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        for line in lines:
            reader.parse_line(line)
    finally:
        sys.setprofile(None)

    assert reader.run.text == "ab" * 1000
    assert calls < 50 * 1000


def test_an_exception_of_a_callback_is_raised_and_the_run_can_be_read_on(client):  # noqa: F811
    cms, script = client(stream(CHUNKS), stream(CHUNKS[3:], 4))
    numbers = []

    def stop_at_three(chunk):
        numbers.append(chunk["number"])
        if chunk["number"] == 3:
            raise httpx.ReadError("of the callback")

    with pytest.raises(httpx.ReadError, match="of the callback"):
        cms.stream("concierge", "Hello", on_chunk=stop_at_three)
    cms.observe(RUN, numbers[-1], on_chunk=stop_at_three)

    assert numbers == [1, 2, 3, 4, 5, 6]
    assert len(script.requests) == 2


class Closing(Broken):
    """A response body that notes that its connection was closed."""

    is_closed = False

    async def aclose(self):
        self.is_closed = True


def test_coroutine_functions_are_awaited():
    cms = BlockingClient("http://cms", "key", transport=httpx.MockTransport(ScriptedTransport(stream(CHUNKS))))
    numbers = []

    async def note(chunk):
        numbers.append(chunk["number"])

    cms.stream("concierge", "Hello", on_chunk=note)

    assert numbers == [1, 2, 3, 4, 5, 6]


def test_another_process_reads_the_same_run_from_any_event(served: Served):
    from agentcms_client import CALLS, Client

    with Client(served.base_url, served.keys["python"]) as cms:
        cms.create_agent("stream-me", name="S", instructions="", model={"provider": "demo", "name": "echo"})
        chunks = []
        run = cms.stream("stream-me", "Hello there", on_chunk=chunks.append)
        script = (
            "import sys, json; from agentcms_client import Client\n"
            f"with Client({served.base_url!r}, {served.keys['python']!r}) as cms:\n"
            f"    cms.observe({run.run_id!r}, 4, on_chunk=lambda chunk: print(json.dumps(chunk)))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], cwd=HERE, capture_output=True, text=True, timeout=60)
        cms.send(CALLS.delete_agent("stream-me"))

    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == chunks[4:]
    assert "Hello there" in run.text


def test_decisions_send_what_they_were_given(client):  # noqa: F811
    cms, script = client(*(answer(200, {"id": "a"}) for _ in range(3)))

    cms.approve("a", {"amount": 1}, mark="m")
    cms.decline("a", "Too much.")
    cms.resume("a", None)

    assert [json.loads(request.content) for request in script.requests] == [
        {"decision": "approve", "arguments": {"amount": 1}, "reason": "", "mark": "m"},
        {"decision": "decline", "reason": "Too much.", "mark": ""},
        {"decision": "resume", "mark": "", "resumeData": None},
    ]
    assert {request.url.path for request in script.requests} == {"/api/approvals/a"}


def test_waiting_ends_with_the_run(client, pauses):  # noqa: F811
    cms, _ = client(*(answer(200, {"status": status}) for status in ("running", "suspended", "succeeded")))

    assert cms.wait(RUN)["status"] == "succeeded"
    assert len(pauses) == 2


def test_waiting_ends_after_its_time_limit(client, pauses):  # noqa: F811
    cms, _ = client(answer(200, {"status": "suspended"}))

    with pytest.raises(TimeoutError):
        cms.wait(RUN, 0)


def test_the_events_of_a_thread_are_read_with_the_signals_between(client):  # noqa: F811
    cms, script = client(stream([("data-signal", {}), *CHUNKS]))

    chunks = list(cms.follow_thread("concierge", "trip", resourceId="alice"))

    assert [chunk["type"] for chunk in chunks] == ["data-signal", *(kind for kind, _ in CHUNKS)]
    assert json.loads(script.requests[0].content) == {"threadId": "trip", "resourceId": "alice"}


def test_a_stream_of_a_thread_is_requested_again_until_it_is_open(client, pauses):  # noqa: F811
    cms, script = client(answer(503, Retry_After="2"), httpx.ConnectError("refused"), stream(CHUNKS, lost=True))

    with pytest.raises(httpx.ReadError):
        list(cms.follow_thread("concierge", "trip"))

    assert len(script.requests) == 3
    assert pauses[0] == 2


def test_a_stream_of_a_thread_that_ends_in_the_middle_of_an_event_is_lost(client):  # noqa: F811
    cms, _ = client(cut_stream(b'id: 3\ndata: {"type": "text-de'))

    with pytest.raises(httpx.ReadError, match="in the middle of an event"):
        list(cms.follow_thread("concierge", "trip"))


def test_a_reader_of_a_thread_that_leaves_closes_the_connection():
    body = Closing(blocks(CHUNKS))

    async def read_one():
        transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=body))
        cms = AsyncClient("http://cms", "key", transport=transport)
        async with aclosing(cms.follow_thread("concierge", "trip")) as chunks:
            async for _ in chunks:
                break
        return body.is_closed

    assert asyncio.run(read_one())


def test_messages_and_signals_are_sent_to_a_thread(client):  # noqa: F811
    cms, script = client(*[answer(200, {"accepted": True})] * 4)

    for call in (
        CALLS.send_message("concierge", "Hello", threadId="trip"),
        CALLS.queue_message("concierge", "Then this", threadId="trip"),
        CALLS.send_signal("concierge", {"type": "ping", "contents": ""}, threadId="trip"),
        CALLS.abort_thread("concierge", "trip"),
    ):
        cms.send(call)

    paths = [request.url.path.removeprefix("/api/agents/concierge/") for request in script.requests]
    assert paths == ["send-message", "queue-message", "signals", "threads/abort"]
    body = json.loads(script.requests[0].content)
    assert body == {"message": {"contents": "Hello", "id": body["message"]["id"]}, "threadId": "trip"}
