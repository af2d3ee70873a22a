"""ACP agents whose record changes while a prompt waits, while one is in progress, and between two prompts."""

import asyncio
from dataclasses import replace

import pytest

from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tests.tools_app.acp.conftest import Conversation, create_agent, end_all, processes, sleeping_task
from tests.tools_app.acp.test_processes import until
from tools_app.acp import sessions
from tools_app.acp.errors import AcpError
from tools_app.acp.permissions import ChosenOption, Decisions, write_request
from tools_app.acp.sessions import agent_pool

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(db):
    return Conversation(add_thread(UserFactory()).pk)


@pytest.fixture
def quick_checks(monkeypatch):
    monkeypatch.setattr(sessions, "CHECK_INTERVAL", 0.1)


def test_a_prompt_that_waited_uses_the_record_as_it_is_now(conversation, settings):
    """Another value of a secret, and a policy that allows less."""
    row = create_agent(environment={"TOKEN": "first"})
    hang, sleep = sleeping_task()

    async def converse():
        hanging = asyncio.ensure_future(conversation.send(hang))
        await until(lambda: processes(sleep))
        waiting = [
            asyncio.ensure_future(conversation.send(task)) for task in ("environment TOKEN", "write a.txt hello")
        ]
        await asyncio.wait(waiting, timeout=0.5)
        row.set_environment({"TOKEN": "second"})
        row.permissions = "reject"
        await asyncio.to_thread(row.save)
        hanging.cancel()
        answers = [(await one)[0] for one in waiting]
        await end_all(agent_pool())
        return answers

    assert asyncio.run(asyncio.wait_for(converse(), 120)) == ["second", "failed: The write was not allowed."]
    assert list(settings.WORKSPACES_DIR.rglob("a.txt")) == []


@pytest.mark.parametrize("change", ["disabled", "deleted", "edited"])
def test_an_idle_process_ends_with_its_record(conversation, quick_checks, settings, change):
    """It has the earlier environment, and may go on by itself."""
    row = create_agent(environment={"TOKEN": "first"})

    async def converse():
        await conversation.send("echo a")
        was_running = bool(processes(str(settings.WORKSPACES_DIR)))
        await asyncio.to_thread(apply_change, row, change)
        await until(lambda: not processes(str(settings.WORKSPACES_DIR)), 20)
        entries = dict(agent_pool().entries)
        await end_all(agent_pool())
        return was_running, entries

    assert asyncio.run(converse()) == (True, {})


def apply_change(row, change):
    if change == "deleted":
        row.delete()
        return
    row.is_enabled = change != "disabled"
    row.set_environment({"TOKEN": "second"})
    row.save()


@pytest.mark.parametrize(
    ("change", "reason"),
    [("disabled", "The ACP agent 'Worker' is disabled."), ("deleted", "The ACP agent was deleted.")],
)
def test_a_prompt_ends_when_its_agent_is_switched_off(conversation, quick_checks, change, reason):
    row = create_agent()
    hang, sleep = sleeping_task()

    async def converse():
        hanging = asyncio.ensure_future(conversation.send(hang))
        await until(lambda: processes(sleep))
        await asyncio.to_thread(apply_change, row, change)
        with pytest.raises(AcpError) as error:
            await asyncio.wait_for(hanging, 20)
        await until(lambda: not processes(sleep), 20)
        await end_all(agent_pool())
        return str(error.value)

    assert asyncio.run(converse()) == reason


def test_a_prompt_goes_on_while_its_record_is_edited(conversation, quick_checks):
    row = create_agent()

    async def converse():
        working = asyncio.ensure_future(conversation.send("echo a"))
        await until(lambda: any(slot.process for slot in agent_pool().entries.values()))
        await asyncio.to_thread(apply_change, row, "edited")
        text, *_ = await working
        await end_all(agent_pool())
        return text

    assert asyncio.run(converse()) == "one two 1 a"


@pytest.mark.parametrize("policy", ["first_option", "allow_reads"])
def test_the_refusal_of_a_person_outlives_a_policy_that_allows_more(policy):
    """The policy changed while the request waited: the person decided about this very request."""
    request = replace(write_request("a.txt", "hello"), kind="read")
    chosen = ChosenOption("reject", "reject_once")

    once = Decisions(policy, True, {request.mark: chosen})
    always = Decisions(policy, True, always={request.mark: "reject_always"})

    assert (once.answer(request), always.answer(request)) == ("reject", "reject")


def test_a_policy_that_rejects_outweighs_an_earlier_approval():
    request = write_request("a.txt", "hello")
    decisions = Decisions("reject", True, {request.mark: ChosenOption("allow", "allow_once")})

    assert decisions.answer(request) == "reject"
