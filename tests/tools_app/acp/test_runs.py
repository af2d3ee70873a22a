"""ACP agents in runs of agents: as tools, as sub-agents, and with decisions of people."""

import json

import pytest
from django.db import transaction
from django.urls import reverse

from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.exceptions import RunError
from runs_app.models import AgentRun, PendingCall
from tests.conftest import DRILL
from tests.factories import AgentFactory, member
from tests.runs import DEMO, chunks, start_run, wait_for_end
from tests.served import wait_until
from tests.tools_app.acp.conftest import create_agent, processes, sleeping_task
from tools_app.acp.connection import process
from tools_app.models import AcpPermission


@pytest.fixture
def editor(idle_engine, ended_agents):
    return member("editor", "support")


def agent(**fields):
    return AgentFactory(model=DEMO, owner_id="support", **{"tools": ["acp-worker"], **fields})


def task(text, name="acp-worker", **members):
    return f"Use {name} {json.dumps({'task': text, **members})}"


def wait_for_call(run):
    """Wait until a run of the tree waits for a person, and return the call."""
    calls = PendingCall.objects.waiting().filter(root_id=run.pk).exclude(kind=PendingCall.Kind.CHILD)

    def is_waiting():
        run.refresh_from_db()
        assert not run.is_finished, (run.error, run.output)
        return calls.exists() and run.status == AgentRun.Status.SUSPENDED

    wait_until(is_waiting, 60, "a call that waits")
    return calls.get()


def answer(call, user, option_id="yes", outcome="selected"):
    data = {"outcome": outcome, "optionId": option_id} if outcome == "selected" else {"outcome": outcome}
    return decide_pending_call(call, Decision(Verdict.RESUME, resume_data=data), user, PendingCall.Via.API)


def results(run):
    return [chunk["payload"]["result"] for chunk in chunks(run, "tool-result")]


def file_of(settings, run, name="a.txt"):
    return settings.WORKSPACES_DIR / "support" / f"run-{run.pk}" / name


def test_a_tool_answers_and_its_events_say_what_the_agent_does(editor):
    create_agent()

    run = wait_for_end(start_run(agent(), editor, task("echo hello")), 60)

    (call,) = chunks(run, "tool-call")
    (plan,) = chunks(run, "acp-plan")
    assert results(run) == [{"output": "one two 1 hello"}]
    origin = call["payload"]["origin"]
    assert (origin["kind"], origin["server"], len(origin["definitionHash"])) == ("ACP agent", "worker", 64)
    assert plan["payload"]["parentToolCallId"] == call["payload"]["toolCallId"]
    assert [chunk["payload"]["inputTokens"] for chunk in chunks(run, "acp-usage")] == [7]


def test_a_crash_is_a_failed_tool_with_masked_errors_in_the_run(editor):
    create_agent(environment={"TOKEN": "hush-hush-hush"})

    run = wait_for_end(start_run(agent(), editor, task("crash")), 60)

    (crash,) = chunks(run, "acp-crash")
    assert run.status == run.Status.SUCCEEDED
    assert "The ACP agent 'Worker' ended (exit 3)." in str(results(run))
    assert (crash["payload"]["exitCode"], crash["payload"]["stderr"]) == (3, "The key is ••••.\n")
    assert "hush-hush-hush" not in str(chunks(run))


def test_a_decision_of_a_person_acts_exactly_once(editor, settings):
    create_agent(permissions="ask")
    run = start_run(agent(), editor, task("edit a.txt hello"))
    call = wait_for_call(run)

    request = call.payload["permissionRequest"]
    was_written = file_of(settings, run).exists()
    answer(call, editor)
    wait_for_end(run, 60)

    assert (request["title"], request["paths"], was_written) == ("Edit a.txt", ["a.txt"], False)
    assert [option["optionId"] for option in request["options"]] == ["yes", "always", "no"]
    assert results(run)[-1] == {"output": "edited"}
    assert file_of(settings, run).read_text() == "hello"
    assert len(chunks(run, "acp-file")) == 1
    assert [chunk["payload"]["kind"] for chunk in chunks(run, "acp-tool-call")] == ["edit", "edit"]
    assert PendingCall.objects.filter(root_id=run.pk).count() == 1


def test_a_refusal_allows_nothing_although_its_option_has_another_meaning_later(editor, settings):
    create_agent(permissions="ask")
    run = start_run(agent(), editor, task("exchange a.txt"), thread="t")

    answer(wait_for_call(run), editor, "no")
    wait_until(lambda: chunks(run, "acp-permission"), 60, "the same request")
    wait_for_call(run)

    assert not list(settings.WORKSPACES_DIR.rglob("a.txt"))
    assert [chunk["payload"]["allowed"] for chunk in chunks(run, "acp-permission")] == [False]


def test_a_write_without_a_permission_asks_and_each_request_asks_anew(editor, settings):
    create_agent(permissions="ask")
    run = start_run(agent(), editor, task("write a.txt hello"))
    answer(wait_for_call(run), editor, "reject")
    wait_for_end(run, 60)
    both = start_run(agent(), editor, task("twice"))
    first = wait_for_call(both)
    answer(first, editor, "yes")
    second = wait_for_call(both)
    answer(second, editor, outcome="cancelled")
    wait_for_end(both, 60)

    assert "not allowed" in str(results(run))
    assert not file_of(settings, run).exists()
    assert [call.payload["permissionRequest"]["title"] for call in (first, second)] == ["First", "Second"]
    assert results(both)[-1] == {"output": "['yes', 'cancelled']"}


def test_an_answer_for_always_counts_for_the_conversation_until_it_is_taken_back(editor):
    create_agent(permissions="ask")
    worker = agent()
    run = start_run(worker, editor, task("look"), thread="t")
    answer(wait_for_call(run), editor, "always")
    wait_for_end(run, 60)

    again = wait_for_end(start_run(worker, editor, task("look"), thread="t"), 60)
    other = start_run(worker, editor, task("look"), thread="other")
    wait_for_call(other)
    permission = AcpPermission.objects.get()
    permission.delete()
    revoked = start_run(worker, editor, task("look"), thread="t")

    assert (permission.title, permission.decided_by_name) == ("Look", editor.username)
    assert results(again)[-1] == {"output": "yes"}
    assert wait_for_call(revoked)


def test_an_answer_for_always_is_not_lost_with_a_process_that_dies_after_the_decision(editor, monkeypatch):
    create_agent(permissions="ask")
    call = wait_for_call(start_run(agent(), editor, task("look"), thread="t"))
    monkeypatch.setattr("runs_app.approvals.approval_signals.call_after_commit", lambda *args, **kwargs: None)

    answer(call, editor, "always")

    assert AcpPermission.objects.get().option_kind == "allow_always"


def test_without_a_durable_run_nobody_is_asked(editor):
    create_agent(permissions="ask")

    run = wait_for_end(start_run(agent(durable=False), editor, task("look")), 60)

    (permission,) = chunks(run, "acp-permission")
    assert results(run) == [{"output": "no"}]
    assert "not durable" in permission["payload"]["reason"]


def test_a_sub_agent_streams_its_text_and_waits_for_a_person(editor, settings, client):
    create_agent(permissions="ask")
    parent = agent(tools=[], agents=["acp-worker"])
    echo = wait_for_end(start_run(parent, editor, 'Use acp-worker {"prompt": "echo hello"}'), 60)
    run = start_run(parent, editor, 'Use acp-worker {"prompt": "edit a.txt hello"}')
    call = wait_for_call(run)
    client.force_login(editor)
    inbox = client.get(reverse("runs:approvals")).content.decode()
    chosen = client.post(reverse("runs:decide", args=[call.pk]), {"option": "yes", f"call-{call.pk}-mark": call.mark})
    wait_for_end(run, 60)
    page = client.get(reverse("runs:view", args=[AgentRun.objects.get(parent=echo).pk])).content.decode()

    assert "asks for a permission" in inbox
    assert 'name="option" value="always"' in inbox
    assert "<bdi>Always</bdi> (always allows this)" in inbox
    assert chosen.status_code == 302
    assert "Echo it (pending)" in page
    child = AgentRun.objects.get(parent=echo)
    texts = [chunk["payload"]["text"] for chunk in chunks(child, "text-delta")]
    assert (child.output, "".join(texts)) == ("one two 1 hello", "one two 1 hello")
    assert [chunk["payload"]["text"] for chunk in chunks(child, "reasoning-delta")] == ["thinking"]
    assert len(chunks(child, "acp-plan")) == 1
    assert child.usage["inputTokens"] == 7
    assert results(echo) == ["one two 1 hello"]
    origin = chunks(echo, "tool-call")[0]["payload"]["origin"]
    assert (origin["kind"], origin["server"], len(origin["definitionHash"])) == ("ACP agent", "worker", 64)
    assert call.payload["permissionRequest"]["title"] == "Edit a.txt"
    assert AgentRun.objects.get(parent=run).output == "edited"
    assert file_of(settings, run).read_text() == "hello"


def test_a_cancelled_run_cancels_the_prompt_of_its_tool_and_ends_the_agent(editor, settings, client, patience):
    create_agent()
    hang, sleep = sleeping_task()
    run = start_run(agent(), editor, task(hang))
    wait_until(lambda: processes(sleep), 60, "the process of the agent")

    stop(run, editor, client, patience)

    wait_until(lambda: not processes(sleep), patience, "the end of all processes")
    wait_until(file_of(settings, run, "cancelled").exists, patience, "the end of the prompt")


def test_a_sub_agent_streams_while_it_works_until_its_run_is_cancelled(editor, settings, client, patience):
    create_agent()
    hang, sleep = sleeping_task()
    run = start_run(agent(tools=[], agents=["acp-worker"]), editor, f'Use acp-worker {{"prompt": "{hang}"}}')
    wait_until(lambda: AgentRun.objects.filter(parent=run).exists(), 60, "the run of the sub-agent")
    child = AgentRun.objects.get(parent=run)

    # The agent ends its answer only when it is cancelled.
    wait_until(lambda: chunks(child, "text-delta"), 60, "the first words of the agent")
    (delta,) = chunks(child, "text-delta")
    was_running = processes(sleep)
    stop(run, editor, client, patience)

    assert (delta["payload"]["text"], bool(was_running)) == ("hanging", True)
    assert wait_for_end(child, patience).status == AgentRun.Status.CANCELLED
    wait_until(lambda: not processes(sleep), patience, "the end of all processes")
    wait_until(file_of(settings, run, "cancelled").exists, patience, "the end of the prompt")


def stop(run, user, client, seconds):
    client.force_login(user)
    client.post(reverse("runs:stop", args=[run.pk]))
    assert wait_for_end(run, seconds).status == AgentRun.Status.CANCELLED


@pytest.fixture
def patience(monkeypatch):
    """Return the seconds within which an agent must end. Give it more time to obey than it has on a quiet machine."""
    if DRILL:
        return process.CANCEL_TIMEOUT
    monkeypatch.setattr(process, "CANCEL_TIMEOUT", 30)
    return 60


def test_the_task_of_a_sub_agent_is_given_once(editor):
    from tools_app.acp.sub_agent import record_prompt

    create_agent()
    run = wait_for_end(start_run(agent(tools=[]), editor, "Hello"), 60)
    record_prompt(run.pk, 1)

    with pytest.raises(RunError, match="a task is not given twice"), transaction.atomic():
        record_prompt(run.pk, 1)


def test_an_agent_that_is_disabled_or_missing_is_a_warning(editor):
    row = create_agent()
    row.is_enabled = False
    row.save()

    run = wait_for_end(start_run(agent(agents=["acp-gone"]), editor, "Hello"), 60)

    assert sorted((warning["key"], warning["message"]) for warning in run.warnings) == [
        ("acp-gone", "No agent is registered as 'acp-gone'."),
        ("acp-worker", "The ACP agent 'Worker' is disabled."),
    ]
