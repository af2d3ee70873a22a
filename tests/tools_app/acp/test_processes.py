"""The processes of ACP agents: how many there are, and how long each starts and idles."""

import asyncio
import os
import sys
from unittest.mock import AsyncMock, Mock

import pytest
from django.db import OperationalError

from runs_app.engine.thread_pools import run_db
from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tests.tools_app.acp.conftest import Conversation, create_agent, end_all, processes, sleeping_task
from tools_app.acp import sessions
from tools_app.acp.connection import process
from tools_app.acp.connection.process import AgentProcess
from tools_app.acp.errors import AcpError
from tools_app.acp.sessions import agent_pool
from tools_app.models import AcpAgent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversations(db):
    """Return two conversations with the agent."""
    create_agent()
    user = UserFactory()
    return [Conversation(add_thread(user, key).pk) for key in "ab"]


async def until(condition, seconds=60):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def test_an_agent_that_does_not_answer_in_time_is_ended(settings, monkeypatch):
    monkeypatch.setattr(process, "START_TIMEOUT", 2)
    create_agent(environment={"SILENT": "yes"})
    folder = str(settings.WORKSPACES_DIR)

    async def start():
        sending = asyncio.ensure_future(Conversation().send("echo a"))
        await until(lambda: processes(folder) or sending.done())
        was_running = bool(processes(folder))
        await asyncio.wait([sending])
        await until(lambda: not processes(folder))
        return was_running, sending.exception()

    was_running, error = asyncio.run(start())

    assert was_running
    assert isinstance(error, AcpError)
    assert str(error) == "The ACP agent 'Worker' did not start within 2 seconds."


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_program_ends_whose_session_cannot_be_stored(conversations, settings, monkeypatch, is_cancelled):
    """No slot has the program yet, so that nothing else would end it."""
    folder, storing = str(settings.WORKSPACES_DIR), asyncio.Event()

    async def fail(function, *args):
        if function is not sessions.store_session:
            return await run_db(function, *args)
        storing.set()
        if is_cancelled:
            await asyncio.sleep(60)
        raise OperationalError("The database is away.")

    monkeypatch.setattr(sessions, "run_db", fail)

    async def converse():
        sending = asyncio.ensure_future(conversations[0].send("echo a"))
        await storing.wait()
        was_running = bool(processes(folder))
        if is_cancelled:
            sending.cancel()
        await asyncio.wait([sending])
        await until(lambda: not processes(folder), 20)
        await end_all(agent_pool())
        return was_running

    assert asyncio.run(converse())


def test_a_program_ends_that_closed_its_output_before_its_start_was_cancelled(settings, monkeypatch):
    sleep = f"time.sleep(1{os.getpid()})"
    argv = [sys.executable, "-c", f"import os, time; os.close(1); {sleep}"]
    settings.ACP_COMMANDS = {"mute": {"argv": argv, "sandbox": "none"}}
    create_agent(command_key="mute")
    monkeypatch.setattr(process, "END_TIMEOUT", 30)
    noticing = AgentProcess.ended_error

    async def converse():
        noticed = asyncio.Event()

        def notice(agent):
            noticed.set()
            return noticing(agent)

        monkeypatch.setattr(AgentProcess, "ended_error", notice)
        sending = asyncio.ensure_future(Conversation().send("echo a"))
        await noticed.wait()
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        await until(lambda: not processes(sleep), 20)

    asyncio.run(converse())


def test_the_least_recently_used_process_ends_where_there_are_too_many(conversations, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_ACP_PROCESSES", 1)
    first, second = conversations

    async def converse():
        answers, counts = [], []
        for conversation, task in [(first, "echo a"), (second, "echo b"), (second, "echo c"), (first, "echo d")]:
            answers.append((await conversation.send(task))[0])
            counts.append(len(agent_pool().entries))
        await end_all(agent_pool())
        return answers, counts

    answers, counts = asyncio.run(converse())

    assert answers == ["one two 1 a", "one two 1 b", "one two 2 c", "one two 1 d"]
    assert counts == [1, 1, 1, 1]


def test_a_prompt_waits_while_all_processes_are_in_use(conversations, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_ACP_PROCESSES", 1)
    first, second = conversations
    hang, sleep = sleeping_task()

    async def converse():
        hanging = asyncio.ensure_future(first.send(hang))
        await until(lambda: processes(sleep))
        waiting = asyncio.ensure_future(second.send("echo b"))
        await asyncio.wait([waiting], timeout=0.5)
        count, has_waited = len(agent_pool().entries), not waiting.done()
        hanging.cancel()
        text, *_ = await waiting
        await end_all(agent_pool())
        return count, has_waited, text

    assert asyncio.run(asyncio.wait_for(converse(), 120)) == (1, True, "one two 1 b")


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize(
    ("change", "reason"),
    [("save", "The ACP agent 'Worker' is disabled."), ("delete", "The ACP agent was deleted.")],
)
def test_a_prompt_that_waited_is_given_to_no_agent_that_was_switched_off_meanwhile(
    conversations, monkeypatch, is_same, change, reason
):
    """It waited for the process of its conversation, or for a place for another one."""
    monkeypatch.setattr(sessions, "MAX_ACP_PROCESSES", 1)
    first, second = conversations
    row = AcpAgent.objects.get()
    row.is_enabled = False
    hang, sleep = sleeping_task()

    async def converse():
        hanging = asyncio.ensure_future(first.send(hang))
        await until(lambda: processes(sleep))
        waiting = asyncio.ensure_future((first if is_same else second).send("echo b"))
        await asyncio.wait([waiting], timeout=0.5)
        await asyncio.to_thread(getattr(row, change))
        hanging.cancel()
        with pytest.raises(AcpError) as error:
            await waiting
        await end_all(agent_pool())
        return str(error.value)

    assert asyncio.run(asyncio.wait_for(converse(), 120)) == reason


def test_an_idle_process_ends(conversations, monkeypatch):
    monkeypatch.setattr(sessions, "PROCESS_IDLE_SECONDS", 0.2)

    async def converse():
        answers = []
        for task in ("echo a", "echo b"):
            answers.append((await conversations[0].send(task))[0])
            (slot,) = agent_pool().entries.values()
            await until(lambda program=slot.process.process: program.returncode is not None)
            assert agent_pool().entries == {}
        await end_all(agent_pool())
        return answers

    assert asyncio.run(converse()) == ["one two 1 a", "one two 1 b"]


def test_what_a_program_leaves_that_ends_by_itself_is_ended(conversations):
    """The next prompt starts another one in its place."""

    async def converse():
        await conversations[0].send("echo a")
        (slot,) = agent_pool().entries.values()
        earlier, proxy = slot.process, Mock(close=AsyncMock())
        earlier.proxy = proxy
        earlier.process.kill()
        await until(lambda: earlier.process.returncode is not None)
        text, *_ = await conversations[0].send("echo b")
        await end_all(agent_pool())
        return text, proxy.close.await_count

    assert asyncio.run(converse()) == ("one two 1 b", 1)


def test_a_team_leaves_places_to_others():
    async def take():
        pool = agent_pool()

        def slot_for(team):
            return pool.take(object(), team, lambda: sessions.Slot(team))

        for _ in range(sessions.MAX_PROCESSES_OF_TEAM):
            await slot_for("support")
        waiting = asyncio.ensure_future(slot_for("support"))
        await asyncio.wait([waiting], timeout=0.1)
        has_waited = not waiting.done()
        waiting.cancel()
        for _ in range(sessions.MAX_ACP_PROCESSES - sessions.MAX_PROCESSES_OF_TEAM):
            await asyncio.wait_for(slot_for("legal"), 20)
        return has_waited

    assert asyncio.run(take())


def test_the_limits_are_those_of_the_documentation():
    assert (process.START_TIMEOUT, process.CANCEL_TIMEOUT) == (60, 2)
    limits = (sessions.MAX_ACP_PROCESSES, sessions.MAX_PROCESSES_OF_TEAM, sessions.PROCESS_IDLE_SECONDS)
    assert limits == (8, 6, 600)
