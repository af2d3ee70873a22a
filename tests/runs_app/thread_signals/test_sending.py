"""Signals to threads: to a run that is active, and to an idle thread."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import transaction
from django.utils import timezone
from pydantic_ai.models.function import FunctionModel

from access_app.role import RoleRequired
from agentcms.errors import ApiError, Conflict
from agents_app.editing.archiving import archive_locked
from agents_app.registry import Entry, Kind, registry
from memory_app.history.signal_markup import Signal
from memory_app.history.signal_payloads import signal_of
from memory_app.history.thread_signals import NO_RUN, refuse_signals, release_signals, save_processed_signal
from memory_app.history.threads import create_named_thread
from memory_app.history.token_estimate import count_tokens
from memory_app.history.wire_messages import place_questions
from memory_app.models import Message
from memory_app.realms import memory_caller
from runs_app.engine import run_ends
from runs_app.models import AgentRun
from runs_app.providers.demo_model import user_prompts
from runs_app.resolution import stored_agents
from runs_app.thread_signals.inbox import Inbox
from runs_app.thread_signals.sending import IfActive, IfIdle, send_signal
from runs_app.thread_signals.woken_runs import start_next_run
from tests.factories import AgentFactory, member
from tests.runs import DEMO, LONG, SLOW, start_run, wait_for_end, wait_for_text
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", model=DEMO, memory="last-messages")


@pytest.fixture
def thread(editor, agent):
    return create_named_thread(memory_caller(editor), "t", "alice", agent=agent, agent_key=agent.pk)


@pytest.fixture
def send(editor, agent, thread):
    """Return a function that sends a signal with a text."""

    def send(text, kind="user", *, user=editor, to=agent, **options):
        attributes = options.pop("attributes", {})
        signal = Signal(kind, text, id=options.pop("id", ""), attributes=attributes)
        return send_signal(thread, signal, user=user, agent=stored_agents.get(to.pk), **options)

    return send


def start_in_thread(agent, editor, text="Hello", **options):
    return start_run(agent, editor, text, thread="t", resource="alice", **options)


def signals():
    return Message.objects.filter(role="signal").order_by("number")


def wait_until_idle(thread):
    wait_until(lambda: not AgentRun.objects.filter(thread=thread).unfinished().exists(), 30, "the end of all runs")


def test_a_signal_wakes_a_durable_run_of_an_idle_thread(send, thread, editor):
    sent = send("What is new?")

    done = wait_for_end(AgentRun.objects.get(pk=sent.run_id))

    assert "You said: What is new?" in done.output
    assert (done.is_durable, done.requested_by, done.thread) == (True, editor, thread)
    rows = [*thread.messages.values_list("number", "role", "text", "author")]
    assert rows == [(1, "signal", "What is new?", editor.pk), (2, "assistant", done.output, None)]
    assert signals().get().seen_by == done.pk


def test_the_run_and_the_signal_are_written_together(send, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("no run today")

    monkeypatch.setattr("runs_app.thread_signals.woken_runs.claim_signals", fail)

    with pytest.raises(RuntimeError, match="no run today"):
        send("Lost?")

    assert not Message.objects.exists()
    assert not AgentRun.objects.exists()


@pytest.mark.parametrize("durable", [True, False])
def test_a_signal_that_comes_while_the_last_answer_is_made_turns_the_run_round(send, agent, editor, thread, durable):
    agent.edit({"model": {**SLOW, "delay": 0.02}})
    run = wait_for_text(start_in_thread(agent, editor, "word " * 40, options={"durable": durable}))

    sent = send("And this?", "reactive", attributes={"source": "github"})

    done = wait_for_end(run)
    assert sent.run_id == run.pk
    assert 'You said: <system-reminder source="github">And this?</system-reminder>' in done.output
    assert AgentRun.objects.count() == 1
    assert signals().get().seen_by == run.pk
    stored = place_questions(Message.objects.order_by("number"))
    assert [message.role for message in stored][:3] == ["user", "signal", "assistant"]


def test_the_next_run_remembers_a_signal_before_the_answer_to_it(send, agent, editor):
    wait_for_end(AgentRun.objects.get(pk=send("My colour is blue.").run_id))

    done = wait_for_end(start_in_thread(agent, editor, "Which colour?"))

    assert "Before that: My colour is blue." in done.output
    assert [*Message.objects.values_list("role", flat=True)] == ["signal", "assistant", "user", "assistant"]


def test_a_persisted_signal_waits_for_the_next_run(send, agent, editor, thread):
    sent = send("By the way", if_idle=IfIdle.PERSIST)
    assert (sent.run_id, AgentRun.objects.count()) == (None, 0)

    done = wait_for_end(start_in_thread(agent, editor, "Hello"))

    assert "You said: By the way Before that: Hello" in done.output
    assert signals().get().seen_by == done.pk


def test_a_discarded_signal_is_not_stored(send):
    assert send("Nobody hears this", if_idle=IfIdle.DISCARD) == (None, None)

    assert not Message.objects.exists()


def test_behaviours_while_a_run_is_active(send, agent, editor, thread):
    agent.edit({"model": SLOW})
    run = wait_for_text(start_in_thread(agent, editor, LONG))

    assert send("discarded", if_active=IfActive.DISCARD) == (run.pk, None)
    assert send("persisted", if_active=IfActive.PERSIST).run_id is None

    run_ends.cancel_run(run.pk)
    wait_until_idle(thread)
    assert [*signals().values_list("text", "seen_by")] == [("persisted", None)]


def test_a_signal_that_is_persisted_during_a_run_is_left_to_the_next_one(send, agent, editor, thread):
    agent.edit({"model": {**SLOW, "delay": 0.02}})
    run = wait_for_text(start_in_thread(agent, editor, "word " * 40))

    sent = send("By the way", "reactive", id="s1", if_active=IfActive.PERSIST)

    assert "By the way" not in wait_for_end(run).output
    assert (sent.run_id, signals().get().seen_by) == (None, None)
    following = wait_for_end(start_in_thread(agent, editor, "Hello"))
    assert "By the way" in following.output
    assert signals().get().seen_by == following.pk


def test_queued_messages_get_runs_of_their_own_in_order(send, agent, editor, thread):
    agent.edit({"model": {**SLOW, "delay": 0.02}})
    first = wait_for_text(start_in_thread(agent, editor, "word " * 20))

    queued = [send(text, if_active=IfActive.QUEUE) for text in ("one", "two")]

    runs = [wait_for_end(AgentRun.objects.get(pk=first.pk))]
    for sent in queued:
        wait_until(lambda run_id=sent.run_id: AgentRun.objects.filter(pk=run_id).exists(), 30, "the queued run")
        runs.append(wait_for_end(AgentRun.objects.get(pk=sent.run_id)))
    assert ["You said: one" in runs[1].output, "You said: two" in runs[2].output] == [True, True]
    assert runs[0].finished_at <= runs[1].created_at
    assert runs[1].finished_at <= runs[2].created_at
    assert [*signals().values_list("seen_by", flat=True)] == [sent.run_id for sent in queued]


def test_a_repeat_with_the_same_id_returns_the_first_signal(send, thread):
    first = send("Once", id="s1")
    wait_for_end(AgentRun.objects.get(pk=first.run_id))

    assert send("Twice", id="s1") == first

    assert (AgentRun.objects.count(), signals().get().text) == (1, "Once")


def test_an_id_of_another_message_is_refused(send, agent, editor):
    wait_for_end(start_in_thread(agent, editor, [{"id": "m1", "role": "user", "content": "Hello"}]))

    with pytest.raises(Conflict, match="Use another ID"):
        send("Signal", id="m1")


def test_too_many_waiting_signals_are_refused(send, settings):
    settings.SIGNALS_UNSEEN = 2
    for text in ("one", "two"):
        send(text, if_idle=IfIdle.PERSIST)

    with pytest.raises(ApiError, match="2 signals of this thread wait already") as refused:
        send("three")

    assert refused.value.status == 429
    assert signals().count() == 2


def test_a_viewer_cannot_send_a_signal(send):
    with pytest.raises(RoleRequired):
        send("Hello", user=member("viewer"))

    assert not Message.objects.exists()


def test_a_signal_that_comes_before_the_end_is_written_wakes_the_next_run(send, agent, editor, thread):
    """The run has looked for signals for the last time, and its end is not yet written."""
    agent.edit({"model": SLOW})
    run = wait_for_text(start_in_thread(agent, editor, LONG))
    send("Still there?")
    run_ends.cancel_run(run.pk)
    wait_until_idle(thread)

    following = AgentRun.objects.exclude(pk=run.pk).get()

    assert "Still there?" in following.output or "Still there?" in str(following.input)
    assert signals().get().seen_by == following.pk


@pytest.fixture
def requests():
    """Return the prompts of each request to the model of the provider `spy`."""
    requests = []

    async def answer(messages, info):
        requests.append([*user_prompts(messages)])
        yield "Noted."

    registry.add(
        Entry(
            Kind.MODEL_PROVIDER,
            "spy",
            "Spy",
            names=("model",),
            target=lambda name, settings: FunctionModel(stream_function=answer),
        )
    )
    return requests


def test_a_run_that_several_signals_wake_is_given_each_once(send, agent, editor, thread, requests):
    agent.edit({"model": SLOW})
    run = wait_for_text(start_in_thread(agent, editor, LONG))
    agent.edit({"model": {"provider": "spy", "name": "model"}})
    for text in ("one", "two", "three"):
        send(text)
    run_ends.cancel_run(run.pk)
    wait_until_idle(thread)

    assert requests == [["one", "two", "three"]]
    assert [*signals().values_list("text", flat=True)] == ["one", "two", "three"]


@pytest.mark.parametrize(("lost_runs", "is_followed"), [(0, True), (1, True), (2, False)])
def test_a_run_whose_process_died_is_followed_three_times_at_most(
    send, agent, editor, thread, lost_runs, is_followed, monkeypatch
):
    monkeypatch.setattr("runs_app.engine.start.rows.get_runner", NoRunner)
    sent = send("Remember me", if_idle=IfIdle.PERSIST)
    row = sent.message
    lost = AgentRun.objects.create(
        agent=agent,
        agent_key=agent.pk,
        configuration={},
        input={},
        thread=thread,
        status="running",
        lease_until="2026-01-01T00:00:00Z",
        holder="x:1:y",
        requested_by=editor,
    )
    row.seen_by, row.delivery = lost.pk, {**row.delivery, "wakes": True, "lostRuns": lost_runs}
    row.save()

    run_ends.end_lost_run(lost.pk)

    following = AgentRun.objects.exclude(pk=lost.pk).first()
    assert (following is not None) == is_followed
    row.refresh_from_db()
    assert row.seen_by == (following.pk if following else lost.pk)
    assert ("error" in row.delivery) == (not is_followed)


def test_a_durable_run_whose_processes_died_again_and_again_is_followed(send, agent, editor, thread, monkeypatch):
    monkeypatch.setattr("runs_app.engine.start.rows.get_runner", NoRunner)
    row = send("Remember me", if_idle=IfIdle.PERSIST).message
    columns = {"agent": agent, "agent_key": agent.pk, "configuration": {}, "input": {}, "requested_by": editor}
    lost = AgentRun.objects.create(thread=thread, status="failed", finished_at=timezone.now(), **columns)
    row.seen_by, row.delivery = lost.pk, {**row.delivery, "wakes": True}
    row.save()

    with transaction.atomic():
        start_next_run(
            lost.pk,
            status="failed",
            error=f"{run_ends.LOST_PROCESS} or lost the database 3 times in a row at 'count' (0/t/c0).",
        )

    row.refresh_from_db()
    assert row.seen_by == AgentRun.objects.exclude(pk=lost.pk).get().pk


def test_signals_do_not_wait_for_a_run_that_is_deleted_with_its_agent(send, agent, editor, thread):
    other = AgentFactory(id="other", model=SLOW, memory="last-messages")
    wait_for_text(start_in_thread(other, editor, LONG))
    to_deleted = send("For a deleted agent", if_active=IfActive.QUEUE, to=other).message
    to_agent = send("For another agent", if_active=IfActive.QUEUE).message

    other.delete()

    run = wait_for_end(AgentRun.objects.get(agent=agent))
    to_deleted.refresh_from_db()
    to_agent.refresh_from_db()
    assert to_deleted.delivery["error"] == "The agent no longer exists."
    assert (run.status, to_agent.seen_by, str(run.pk)) == ("succeeded", run.pk, to_agent.delivery["runId"])


def test_a_replay_in_another_process_names_the_known_signals_in_the_same_order(monkeypatch):
    arguments = []

    async def take(self, ctx, known):
        arguments.append(known)
        return []

    monkeypatch.setattr(Inbox, "take", take)
    keys = [f"s{number}" for number in range(50)]
    deps = SimpleNamespace(thread_id=1, known_signals={*keys})

    asyncio.run(Inbox().take_new(SimpleNamespace(deps=deps)))

    assert arguments == [sorted(keys)]


class NoRunner:
    """A runner that leaves runs queued."""

    def dispatch(self, run_id):
        return True


def test_a_signal_whose_run_cannot_be_started_says_why(send, agent, editor, thread):
    agent.edit({"model": SLOW})
    run = wait_for_text(start_in_thread(agent, editor, LONG))
    send("Too late")
    with transaction.atomic():
        archive_locked(agent)
    run_ends.cancel_run(run.pk)

    wait_until_idle(thread)

    row = signals().get()
    assert (row.seen_by, row.delivery["error"]) == (NO_RUN, "The agent was archived.")


def test_a_message_of_somebody_who_was_deleted_wakes_no_run(send, agent, editor, thread):
    agent.edit({"model": SLOW})
    active = wait_for_text(start_in_thread(agent, editor, LONG))
    sender = member("editor")
    queued = send("Later", user=sender, if_active=IfActive.QUEUE).message
    sender.delete()
    run_ends.cancel_run(active.pk)

    wait_until_idle(thread)

    queued.refresh_from_db()
    assert (queued.seen_by, queued.delivery["error"]) == (NO_RUN, "The sender may no longer run the agent.")
    assert AgentRun.objects.count() == 1


def test_input_processors_see_signals_of_a_run_that_failed_before_it_came_to_them(send, agent, editor, thread):
    agent.edit({"input_processors": [{"key": "mask-email"}]})
    attributes = {"from": "bob@example.com"}
    send("Write to ada@example.com", "notification", if_idle=IfIdle.PERSIST, attributes=attributes)
    signals().update(seen_by=RunFactory(agent=agent, status="failed").pk)

    done = wait_for_end(start_in_thread(agent, editor))

    assert 'Before that: <notification from="[e-mail]">Write to' in done.output
    assert "example.com" not in done.output
    row = signals().get()
    assert "example.com" not in f"{row.text} {row.data} {row.attributes}"
    assert row.seen_by == done.pk  # so that observers, titles and recall may read it


def test_a_processed_signal_has_the_tokens_of_its_new_text(send, thread):
    send("word " * 400, if_idle=IfIdle.PERSIST)

    save_processed_signal(thread.pk, signals().get().key, "Shortened", {})

    assert signals().get().tokens == count_tokens("Shortened")


@pytest.mark.parametrize("status", ["suspended", "running"])
def test_a_signal_of_a_run_that_is_not_over_stays_its_own(send, agent, editor, thread, status):
    send("By the way", if_idle=IfIdle.PERSIST)
    columns = {"finished_at": None, "lease_until": timezone.now() - timedelta(hours=1)}
    other = RunFactory(agent=agent, thread=thread, status="failed", chunks=[])
    signals().update(seen_by=other.pk)

    done = start_in_thread(agent, editor)
    AgentRun.objects.filter(pk=other.pk).update(status=status, **columns)
    wait_for_end(done)

    assert signals().get().seen_by == other.pk


def test_a_refused_signal_has_come_to_no_input_processors(send, agent, editor, thread):
    agent.edit({"input_processors": [{"key": "mask-email"}]})
    done = wait_for_end(start_in_thread(agent, editor, "Hello"))
    send("Write to ada@example.com", if_idle=IfIdle.PERSIST)
    refuse_signals([*signals()], "The agent was archived.")

    following = wait_for_end(start_in_thread(agent, editor, "And now?"))

    assert "example.com" not in following.output
    assert signals().get().seen_by == following.pk != done.pk


def test_the_input_of_a_woken_run_has_what_the_processors_left(send, agent):
    agent.edit({"input_processors": [{"key": "mask-email"}]})
    sent = send("Write to ada@example.com", "notification", attributes={"from": "bob@example.com"})
    queued = AgentRun.objects.get(pk=sent.run_id).input

    done = wait_for_end(AgentRun.objects.get(pk=sent.run_id))

    assert "example.com" not in str(queued)
    text = done.input["messages"][0]["content"][0]["text"]
    assert text == '<notification from="[e-mail]">Write to [e-mail]</notification>'


def test_the_input_of_a_run_that_failed_before_its_processors_has_no_text(send, agent):
    registry.add(Entry(Kind.PROCESSOR, "refuse", "Refuse", target=refuse))
    agent.edit({"input_processors": [{"key": "refuse"}]})

    done = wait_for_end(AgentRun.objects.get(pk=send("Write to ada@example.com").run_id))

    assert done.status == "failed"
    assert "ada@" not in str(done.input)  # an ID may contain "ada"


def refuse(text):
    raise ValueError("Not this.")


def test_without_processors_the_input_has_the_signal(send):
    assert "ada@example.com" in str(AgentRun.objects.get(pk=send("Write to ada@example.com").run_id).input)


def test_signals_of_a_run_that_has_answered_them_do_not_wait_again(send, agent, thread):
    done = wait_for_end(AgentRun.objects.get(pk=send("Hello").run_id))

    release_signals(thread.pk, done.pk, 3)

    assert signals().get().seen_by == done.pk


@pytest.mark.parametrize("processors", [[], [{"key": "mask-email"}]])
def test_the_model_reads_the_attributes_in_the_order_in_which_they_were_sent(send, agent, processors):
    agent.edit({"input_processors": processors})
    attributes = {"source": "git a@example.com", "pr": 123, "by": None, "name": "Ann"}

    sent = send("Merged", "system-reminder", attributes=attributes)

    source = "git [e-mail]" if processors else "git a@example.com"
    markup = f'<system-reminder source="{source}" pr="123" name="Ann">Merged</system-reminder>'
    assert markup in wait_for_end(AgentRun.objects.get(pk=sent.run_id)).output
    stored = Message.objects.get(role="signal")
    assert stored.data["parts"][0]["content"] == markup
    assert [*signal_of(stored).attributes] == [*attributes]


def test_input_processors_see_the_text_and_the_attributes_of_each_signal(send, agent, editor, thread):
    agent.edit({"input_processors": [{"key": "mask-email"}], "model": {**SLOW, "delay": 0.02}})
    run = wait_for_text(start_in_thread(agent, editor, "word " * 40))

    send("Write to ada@example.com", "notification", attributes={"from": "bob@example.com"})

    done = wait_for_end(run)
    assert "example.com" not in done.output
    assert "<notification" in done.output
    row = signals().get()
    assert "example.com" not in f"{row.text} {row.data} {row.attributes}"
