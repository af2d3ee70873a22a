"""Killing the process that executes a run, at any point: the run continues elsewhere, and no finished step repeats."""

import pytest

from runs_app.models import RunStep
from tests.durable.conftest import event_numbers
from tests.factories import AgentFactory
from tests.runs import chunks

TEN_CALLS = [
    *([["count", {"number": number, "gate": "seven" if number == 7 else ""}]] for number in range(10)),
    "Done.",
]


def assert_complete(run):
    """Check that the events of a run are numbered without a gap, and that each call has one event of each kind."""
    assert event_numbers(run) == list(range(1, run.last_event_number + 1))
    for kind in ("tool-call", "tool-result"):
        calls = [chunk["payload"]["toolCallId"] for chunk in chunks(run, kind)]
        assert len(calls) == len({*calls})
    assert len(chunks(run, "start")) == len(chunks(run, "finish")) == 1
    assert len(chunks(run, "step-start")) == len(chunks(run, "step-finish"))


def test_a_run_killed_in_its_eighth_call_repeats_only_that_call(engine):
    process = engine.start_process()
    run = engine.start(TEN_CALLS)
    engine.wait_for_note("tool 7 begins")

    engine.kill(process)
    engine.open("seven")
    engine.start_process()

    done = engine.finish(run)
    assert (done.status, done.output, done.error) == ("succeeded", "Done.", "")
    assert engine.notes("tool") == [
        f"tool {number} {state}" for number in range(10) for state in (["begins"] * (1 + (number == 7)) + ["ends"])
    ]
    assert engine.notes("model") == [f"model {number}" for number in range(11)]
    assert_complete(done)
    assert (done.fence, done.attempts) == (2, 0)
    assert set(RunStep.objects.filter(run=run).values_list("state", flat=True)) == {"done"}


def test_a_run_killed_in_an_answer_repeats_the_answer_and_says_so(engine):
    process = engine.start_process()
    run = engine.start([[["count", {"number": 0}]], "One two three."], gates={"1": "middle"})
    engine.wait_for_note("model 1")

    engine.kill(process)
    engine.open("middle")
    engine.start_process()

    done = engine.finish(run)
    assert (done.status, done.output) == ("succeeded", "One two three.")
    assert engine.notes("model") == ["model 0", "model 1", "model 1"]
    assert_complete(done)
    discarded = chunks(done, "step-discarded")
    texts = [event for event in done.events.order_by("number") if event.data["type"] == "text-delta"]
    if discarded:  # unless it was killed before the first words were written
        first = discarded[0]["payload"]["fromEvent"]
        assert done.events.get(number=first).data["type"] == "text-start"
        number = done.events.get(data__type="step-discarded").number
        texts = [event for event in texts if event.number > number]
    assert "".join(event.data["payload"]["text"] for event in texts) == "One two three."


def test_a_call_that_may_not_repeat_is_reported_as_unknown(any_engine):
    engine = any_engine
    process = engine.start_process()
    run = engine.start([[["count-once", {"number": 0, "gate": "never"}]], "Done."], tools=["count-once"])
    engine.wait_for_note("tool 0 begins")

    engine.kill(process)
    engine.start_process()

    done = engine.finish(run)
    assert done.status == "succeeded"
    assert engine.notes("tool") == ["tool 0 begins"]
    (result,) = chunks(done, "tool-result")
    assert result["payload"]["isError"] is True
    assert "It is not known whether it has done its work." in result["payload"]["result"]
    assert_complete(done)


def test_a_repeated_call_has_the_same_idempotency_key(any_engine):
    engine = any_engine
    process = engine.start_process()
    run = engine.start([[["call-facts", {"gate": "facts"}]], "Done."], tools=["call-facts"])
    engine.wait_for_note(f"attempt 1 {run.pk}:c0-0")
    engine.wait_for_steps(run, started=1)

    engine.kill(process)
    engine.open("facts")
    engine.start_process()

    done = engine.finish(run)
    (result,) = chunks(done, "tool-result")
    assert result["payload"]["result"] == {"attempt": 2, "key": f"{run.pk}:c0-0"}


def test_parallel_calls_that_were_finished_are_not_repeated(any_engine):
    engine = any_engine
    process = engine.start_process()
    calls = [["count", {"number": number, "gate": "two" if number == 2 else ""}] for number in range(3)]
    run = engine.start([calls, "Done."])
    engine.wait_for_note("tool 2 begins")
    for number in (0, 1):
        engine.wait_for_note(f"tool {number} ends")
    engine.wait_for_steps(run, done=3)

    engine.kill(process)
    engine.open("two")
    engine.start_process()

    done = engine.finish(run)
    assert done.status == "succeeded"
    assert sorted(engine.notes("tool")) == sorted(
        [*(f"tool {number} {state}" for number in range(3) for state in ("begins", "ends")), "tool 2 begins"]
    )
    assert_complete(done)


def test_a_step_that_kills_its_process_three_times_fails_the_run(any_engine):
    engine = any_engine
    run = engine.start([[["count", {"number": 0, "gate": "never"}]], "Done."])
    for attempt in range(1, 4):
        process = engine.start_process()
        engine.wait_for_note("tool 0 begins", attempt)
        engine.wait_for_steps(run, started=1)
        engine.kill(process)
    engine.start_process()

    done = engine.finish(run)

    assert done.status == "failed"
    assert done.error.startswith(
        "The server process of this run stopped or lost the database 3 times in a row at 'count' (0/t/c0-0)."
    )
    assert event_numbers(done) == list(range(1, done.last_event_number + 1))


@pytest.mark.parametrize("depth", [1, 2])
def test_a_sub_agent_is_continued_with_its_parent(any_engine, depth):
    engine = any_engine
    inner = {"provider": "planned", "name": "plan", "plan": [[["count", {"number": 0, "gate": "child"}]], "Inner."]}
    AgentFactory(id="inner", model=inner, tools=["count"])
    if depth == 2:
        middle = {"provider": "planned", "name": "plan", "plan": [[["agent-inner", {"prompt": "Go"}]], "Middle."]}
        AgentFactory(id="middle", model=middle, agents=["inner"])
    sub_agent = "inner" if depth == 1 else "middle"
    process = engine.start_process()
    run = engine.start([[[f"agent-{sub_agent}", {"prompt": "Go"}]], "Outer."], tools=[], agents=[sub_agent])
    engine.wait_for_note("tool 0 begins")

    engine.kill(process)
    engine.open("child")
    engine.start_process()

    done = engine.finish(run)
    assert (done.status, done.output) == ("succeeded", "Outer.")
    assert engine.notes("tool") == ["tool 0 begins", "tool 0 begins", "tool 0 ends"]
    assert done.children.count() == 1
    assert type(run).objects.filter(root_id=run.pk, status="succeeded").count() == depth + 1
    assert_complete(done)


def test_a_run_whose_sub_agent_goes_on_may_lose_any_number_of_processes(any_engine):
    """A finished step of the sub-agent also shows that the call of the run above goes on."""
    engine, kills = any_engine, 4
    calls = [[["count", {"number": number, "gate": f"gate-{number}"}]] for number in range(kills)]
    AgentFactory(
        id="inner", model={"provider": "planned", "name": "plan", "plan": [*calls, "Inner."]}, tools=["count"]
    )
    process = engine.start_process()
    run = engine.start([[["agent-inner", {"prompt": "Go"}]], "Outer."], tools=[], agents=["inner"])
    for number in range(kills):
        engine.wait_for_note(f"tool {number} begins")
        engine.wait_for_steps(run.children.get(), started=1)
        engine.kill(process)
        engine.open(f"gate-{number}")
        process = engine.start_process()

    done = engine.finish(run)

    assert (done.status, done.error, done.output, done.attempts) == ("succeeded", "", "Outer.", 0)
    assert done.fence == kills + 1
    assert_complete(done)
