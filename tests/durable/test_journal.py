"""The journal of a durable run: keys, marks, replays in another claim, and values that are hard to store."""

from datetime import timedelta
from threading import Event

import pytest
from django.utils import timezone

from agents_app.registry import Kind, processor, registry, tool
from runs_app import cleanup
from runs_app.engine import run_ends
from runs_app.engine.engine import get_engine
from runs_app.events import pending_writes, writer
from runs_app.models import AgentRun, RunStep
from tests.durable.agent_tools import note
from tests.factories import AgentFactory, member
from tests.runs import chunks, start_run, wait_for_end
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine", "planned")


def start(plan, *, tools=("count",), text="Begin", thread="", is_durable=True, options=(), **fields):
    """Start a run of a new agent whose model follows the plan."""
    model = {"provider": "planned", "name": "plan", "plan": plan, "call_id": fields.pop("call_id", "")}
    agent = AgentFactory(model=model, tools=[*tools], **fields)
    return start_run(agent, member("editor"), text, options={"durable": is_durable, **dict(options)}, thread=thread)


def notes(folder, *beginnings):
    path = folder / "notes"  # of which there is none before the first note
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line.startswith(beginnings)]


def wait_for_steps(run, count, state="done"):
    wait_until(lambda: run.steps.filter(state=state).count() >= count, 30, f"{count} steps that are {state}")


def lose(run):
    """Let this process lose the run as if another one had claimed it, and queue it."""
    engine = get_engine()
    engine.writer._discard_lost([run.pk])
    wait_until(lambda: run.pk not in engine.run_tasks, 20, "the end of the task")
    run.refresh_from_db()
    assert run_ends.requeue_lost_run(run.pk, run.fence)


def take_over(run):
    """Let this process claim a queued run and wait for its end."""
    get_engine().offer(run.pk)
    return wait_for_end(run)


def test_the_keys_of_steps_name_no_agent_model_or_tool():
    done = wait_for_end(start([[["count", {"number": 1}]], "Done."]))

    assert sorted(done.steps.values_list("key", "kind", "state", "attempts")) == [
        ("0/m/1", "model", "done", 1),
        ("0/m/2", "model", "done", 1),
        ("0/t/c0-0", "tool", "done", 1),
    ]


@pytest.mark.parametrize(
    ("tool_name", "arguments", "options", "status", "events"),
    [
        ("count", {"number": 1}, {}, "succeeded", {"tool-result": "done", "finish": "succeeded"}),
        ("refund", {"order": "A-1", "amount": 5}, {}, "suspended", {"tool-call-approval": "suspended"}),
        (
            "structured_output",
            {"number": 1},
            {"structuredOutput": {"schema": {"type": "object"}}},
            "succeeded",
            {"object-result": "succeeded"},
        ),
    ],
)
def test_an_event_is_written_with_the_step_or_the_end_that_it_reports(
    planned, monkeypatch, tool_name, arguments, options, status, events
):
    """Let the thread of the writer write each of these events before anything else is added, if it can."""
    commits, is_written = [], Event()
    add, save = writer.EventWriter.add, writer.save_snapshots

    def add_and_let_write(self, run_id, data):
        is_written.clear()
        add(self, run_id, data)
        if data["type"] in events:
            self.write_soon()
            is_written.wait(0.5)

    def save_and_note(snapshots, *args, **kwargs):
        for snapshot in snapshots.values():
            states = {step.state for step in snapshot.steps if step.kind == "tool"}
            states |= {str(snapshot.end["status"])} if snapshot.end else set()
            commits.extend((data["type"], states) for data, _ in snapshot.chunks)
        owned = save(snapshots, *args, **kwargs)
        is_written.set()
        return owned

    monkeypatch.setattr(writer.EventWriter, "add", add_and_let_write)
    monkeypatch.setattr(writer, "save_snapshots", save_and_note)

    run = start([[[tool_name, arguments]], "Done."], tools=[tool_name], options=options)
    wait_until(lambda: AgentRun.objects.get(pk=run.pk).status == status, 30, status)

    written = {kind: states for kind, states in commits if kind in events}
    assert {kind: events[kind] in states for kind, states in written.items()} == dict.fromkeys(events, True)


def test_a_tool_begins_after_the_answer_that_calls_it_is_written(planned, monkeypatch):
    monkeypatch.setattr(pending_writes, "COMMIT_INTERVAL", 600)

    run = start([[["count", {"number": 1, "gate": "one"}]], "Done."])
    wait_until(lambda: (planned / "notes").exists() and notes(planned, "tool 1 begins"), 20, "the call of the tool")

    assert run.steps.get(key="0/m/1").state == "done"
    (planned / "one.open").touch()
    assert wait_for_end(run).output == "Done."


def test_finished_steps_are_replayed(planned):
    run = start([[["count", {"number": 1}]], [["count", {"number": 2, "gate": "two"}]], "Done."])
    wait_for_steps(run, 1, "started")
    wait_for_steps(run, 3)
    lose(run)
    (planned / "two.open").touch()

    done = take_over(run)

    assert (done.status, done.output, done.fence) == ("succeeded", "Done.", 2)
    assert notes(planned, "model") == ["model 0", "model 1", "model 2"]
    assert notes(planned, "tool 1") == ["tool 1 begins", "tool 1 ends"]
    assert [event.number for event in done.events.all()] == list(range(1, done.last_event_number + 1))
    assert done.usage["totalTokens"] > 0


def test_a_replay_has_the_events_of_an_uninterrupted_run(planned):
    plan = [[["count", {"number": 1}], ["break", {"number": 3}]], [["count", {"number": 2, "gate": "two"}]], "Done."]
    (planned / "two.open").touch()
    usual = wait_for_end(start(plan, tools=["count", "break"]))
    (planned / "two.open").unlink()
    run = start(plan, tools=["count", "break"])
    wait_for_steps(run, 4)
    lose(run)
    (planned / "two.open").touch()

    done = take_over(run)

    def outline(run):
        return [
            (chunk["type"], chunk["payload"].get("toolCallId"), chunk["payload"].get("result"))
            for chunk in chunks(run)
        ]

    assert sorted(map(str, outline(done))) == sorted(map(str, outline(usual)))


def test_a_different_step_fails_the_run_and_is_named():
    run = start([[["count", {"number": 1}]], [["count", {"number": 2, "gate": "two"}]], "Done."])
    wait_for_steps(run, 3)
    lose(run)
    run.steps.filter(key="0/t/c0-0").update(mark="another")

    done = take_over(run)

    assert done.status == "failed"
    assert done.error == "The step 'count' (0/t/c0-0) differs from the one that was recorded."


def test_a_result_of_another_release_fails_the_run_with_a_reason():
    run = start([[["count", {"number": 1}]], [["count", {"number": 2, "gate": "two"}]], "Done."])
    wait_for_steps(run, 3)
    lose(run)
    run.steps.filter(key="0/m/1").update(result={"unknown": 1})

    done = take_over(run)

    assert (done.status, done.error) == (
        "failed",
        "The result of a step was recorded by a release that this one cannot read.",
    )


def test_a_tool_that_was_removed_is_an_answer_to_the_model(planned):
    run = start([[["count", {"number": 1, "gate": "one"}]], "Done."])
    wait_for_steps(run, 1, "started")
    lose(run)
    registry.remove(Kind.TOOL, "count")

    done = take_over(run)

    assert (done.status, done.output) == ("succeeded", "Done.")
    (result,) = chunks(done, "tool-result")
    assert result["payload"]["isError"] is True


def test_servers_may_repeat_the_ids_of_calls(planned):
    plan = [[["count", {"number": number}]] for number in (1, 2)]
    run = start([*plan, [["count", {"number": 3, "gate": "three"}]], "Done."], call_id="call_0")
    wait_for_steps(run, 5)
    wait_for_steps(run, 1, "started")
    lose(run)
    (planned / "three.open").touch()

    done = take_over(run)

    assert done.status == "succeeded"
    assert sorted(done.steps.filter(kind="tool").values_list("key", flat=True)) == [
        "0/t/call_0",
        "0/t/call_0/2",
        "0/t/call_0/3",
    ]
    assert [chunk["payload"]["result"] for chunk in chunks(done, "tool-result")] == [
        "result 1",
        "result 2",
        "result 3",
    ]
    assert notes(planned, "tool 1") == ["tool 1 begins", "tool 1 ends"]
    assert len({chunk["payload"]["toolCallId"] for chunk in chunks(done, "tool-call")}) == 3


def test_servers_may_repeat_the_ids_of_calls_in_one_answer(planned):
    calls = [["count", {"number": 1}], ["count", {"number": 2}], ["count", {"number": 3, "gate": "three"}]]
    run = start([calls, "Done."], call_id="call_0")
    wait_for_steps(run, 3)
    wait_for_steps(run, 1, "started")
    lose(run)
    (planned / "three.open").touch()

    done = take_over(run)

    assert done.status == "succeeded"
    results = {chunk["payload"]["toolCallId"]: chunk["payload"]["result"] for chunk in chunks(done, "tool-result")}
    assert sorted(results.values()) == ["result 1", "result 2", "result 3"]
    assert [chunk["payload"]["toolCallId"] for chunk in chunks(done, "tool-call")] == sorted(results)
    assert [notes(planned, f"tool {number}") for number in (1, 2)] == [
        [f"tool {number} begins", f"tool {number} ends"] for number in (1, 2)
    ]


@pytest.mark.parametrize(
    "text", ["a\0b", "\ud800", "\U0001f600 \u202e", "x" * 150_000], ids=["null", "surrogate", "emoji", "long"]
)
def test_any_text_is_stored_and_replayed(planned, text):
    @tool("odd")
    def odd(number: int) -> dict[str, object]:
        return {"text": text, "number": 2**70, "list": [1.5, None, True]}

    run = start([[["odd", {"number": 1}]], [["count", {"number": 2, "gate": "two"}]], "Done."], tools=["odd", "count"])
    wait_for_steps(run, 3)
    before = chunks(run, "tool-result")
    lose(run)
    (planned / "two.open").touch()

    done = take_over(run)

    assert done.status == "succeeded"
    assert chunks(done, "tool-result")[0] == before[0]
    assert notes(planned, "model") == ["model 0", "model 1", "model 2"]


def test_processors_and_memory_are_steps(planned):
    @processor("shout")
    def shout(text: str) -> str:
        note(f"processor {text}")
        return text.upper()

    plan = [[["count", {"number": 1, "gate": "one"}]], "Done."]
    fields = {"memory": "last-messages", "input_processors": [{"key": "shout"}], "thread": "t"}
    run = start(plan, **fields)
    wait_for_steps(run, 1, "started")
    lose(run)
    (planned / "one.open").touch()

    done = take_over(run)

    assert done.status == "succeeded"
    assert notes(planned, "processor") == ["processor Begin"]
    kinds = set(done.steps.filter(kind="capability").values_list("key", flat=True))
    takes = {f"0/c/inbox.take/{number}" for number in (1, 2, 3)}  # before each request, and after the last answer
    assert kinds == {"0/c/last-messages.recall/1", "0/c/input-processors.process/1", *takes}
    assert done.thread.messages.count() == 4  # the messages of the run once


def test_steps_are_deleted_a_day_after_the_end(settings):
    settings.RUN_STEP_DAYS = 1
    done = wait_for_end(start(["Done."]))
    AgentRun.objects.filter(pk=done.pk).update(finished_at=timezone.now() - timedelta(hours=23))
    assert not cleanup.expired_steps().exists()

    AgentRun.objects.filter(pk=done.pk).update(finished_at=timezone.now() - timedelta(hours=25))

    assert cleanup.expired_steps().count() == RunStep.objects.count() == 1


def test_a_run_that_is_not_durable_has_no_steps():
    agent = AgentFactory(model={"provider": "planned", "name": "plan", "plan": ["Done."]})

    done = wait_for_end(start_run(agent, member("editor"), "Begin", options={"durable": False}))

    assert (done.status, done.is_durable, done.steps.count(), done.fence) == ("succeeded", False, 0, 0)
