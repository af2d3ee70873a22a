"""Reading the events of a durable run while processes that execute it die: one numbering, nothing twice."""

import threading

import pytest
from agentcms_client.streaming import StreamedRun, StreamReader
from django.db import connection

from runs_app.display.transcript import Transcript
from runs_app.engine.engine import get_engine
from runs_app.events.streams import follow_events
from runs_app.models import RunEvent
from tests.api_client import Caller
from tests.durable.test_journal import lose, start, take_over, wait_for_steps
from tests.factories import AgentFactory, api_key, member
from tests.runs import chunks, start_run, wait_for_end
from tests.served import wait_until

PLAN = [[["count", {"number": 0}]], [["count", {"number": 1, "gate": "one"}]], "One two three."]


class Observer(threading.Thread):
    """A reader of all events of a run. It drops its connection after every `drop_after` batches, and reads on."""

    def __init__(self, run, after=0, drop_after=1000):
        super().__init__(daemon=True)
        self.run_id, self.after, self.drop_after = run.pk, after, drop_after
        self.numbers, self.chunks = [], []
        self.start()

    def run(self):
        try:
            while not (self.chunks and self.chunks[-1]["type"] in ("finish", "error", "abort")):
                self.read_once()
        finally:
            connection.close()

    def read_once(self):
        for count, batch in enumerate(follow_events(self.run_id, self.after), 1):
            for number, chunk in batch:
                self.numbers.append(number)
                self.chunks.append(chunk)
                self.after = number
            if count == self.drop_after:
                return

    def finish(self):
        self.join(60)
        assert not self.is_alive(), self.numbers
        return self.numbers


def interrupted(planned, plan=PLAN, gate="one", steps=3):
    """Return a run that has lost its process in a call."""
    run = start(plan)
    wait_for_steps(run, steps)
    wait_for_steps(run, 1, "started")
    lose(run)
    (planned / f"{gate}.open").touch()
    return run


def test_two_observers_read_one_numbering_over_a_lost_process(planned, idle_engine):
    run = start(PLAN)
    first, second = Observer(run), Observer(run, drop_after=1)
    wait_for_steps(run, 3)
    wait_for_steps(run, 1, "started")
    lose(run)
    late = Observer(run)
    (planned / "one.open").touch()

    done = take_over(run)

    expected = list(range(1, done.last_event_number + 1))
    assert [observer.finish() for observer in (first, second, late)] == [expected] * 3
    assert first.chunks == second.chunks == late.chunks == chunks(done)


def test_a_reader_may_drop_after_any_event(planned, idle_engine):
    done = take_over(interrupted(planned))

    whole = [event for batch in follow_events(done.pk) for event in batch]
    for number in range(done.last_event_number + 1):
        rest = [event for batch in follow_events(done.pk, number) for event in batch]
        assert rest == whole[number:]


def test_an_event_stream_continues_after_the_last_event_id(planned, idle_engine):
    run = interrupted(planned)
    done = take_over(run)
    caller = Caller(api_key(done.requested_by))

    for number in (0, 3, done.last_event_number - 1):
        answer = caller.client.get(f"/api/runs/{run.pk}/stream", headers={"Last-Event-ID": str(number)})
        text = b"".join(answer.streaming_content).decode()
        ids = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
        assert ids == list(range(number + 1, done.last_event_number + 1))
        assert text.endswith("data: [DONE]\n\n")


def test_three_processes_write_one_numbering(planned, idle_engine):
    plan = [*([["count", {"number": number, "gate": str(number)}]] for number in range(2)), "Done."]
    run = start(plan)
    for number in range(2):
        wait_until(run.steps.filter(kind="tool", key=f"0/t/c{number}-0").exists, 30, "the call")
        lose(run)
        (planned / f"{number}.open").touch()
        get_engine().offer(run.pk)
    done = wait_for_end(run)

    assert (done.status, done.fence) == ("succeeded", 3)
    assert [event.number for event in done.events.order_by("number")] == list(range(1, done.last_event_number + 1))
    calls = [chunk["payload"]["toolCallId"] for chunk in chunks(done, "tool-call", "tool-result")]
    assert calls == ["c0-0", "c0-0", "c1-0", "c1-0"]
    for kind in ("start", "finish"):
        assert len(chunks(done, kind)) == 1
    assert len(chunks(done, "step-start")) == len(chunks(done, "step-finish")) == 3


@pytest.fixture
def discarded(planned, idle_engine):
    """Return a finished run whose answer was interrupted after its first words, and repeated."""
    model = {"provider": "planned", "name": "plan", "plan": ["One two three."], "gates": {"0": "middle"}}
    run = start_run(AgentFactory(model=model), member("editor"), "Begin", options={"durable": True})
    wait_until(lambda: run.events.filter(data__type="text-delta").exists(), 30, "the first words")
    lose(run)
    (planned / "middle.open").touch()
    get_engine().offer(run.pk)
    return wait_for_end(run)


def test_an_interrupted_answer_is_discarded_and_repeated(discarded):
    kinds = [chunk["type"] for chunk in chunks(discarded)]
    (notice,) = chunks(discarded, "step-discarded")

    assert kinds.count("step-start") == kinds.count("step-finish") == 1
    first = discarded.events.get(number=notice["payload"]["fromEvent"])
    assert first.data["type"] == "text-start"
    rest = kinds[kinds.index("step-discarded") + 1 :]
    assert rest[0] == "text-start"
    assert discarded.output == "One two three."


def test_a_transcript_forgets_a_discarded_answer(discarded):
    transcript = Transcript(RunEvent.objects.filter(run=discarded).order_by("number"))

    assert [part.text for part in transcript.visible_parts] == ["One two three."]


def test_the_python_client_forgets_a_discarded_answer(discarded):
    answer = Caller(api_key(discarded.requested_by)).client.get(f"/api/runs/{discarded.pk}/stream")
    reader = StreamReader(StreamedRun())

    for line in b"".join(answer.streaming_content).decode().splitlines():
        reader.parse_line(line)

    assert (reader.run.text, reader.run.last_event) == ("One two three.", discarded.last_event_number)


def test_generate_returns_only_the_repeated_answer(discarded):
    caller = Caller(api_key(discarded.requested_by))

    assert caller.get(f"/api/runs/{discarded.pk}").body["output"] == "One two three."
