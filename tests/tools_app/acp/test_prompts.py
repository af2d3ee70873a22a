"""Prompts to ACP agents: the answer as it arrives, sessions, crashes and time limits."""

import asyncio

import pytest

from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tests.served import wait_until
from tests.tools_app.acp.conftest import Conversation, create_agent, end_all, processes, sleeping_task
from tools_app.acp.errors import AcpError, AgentEnded
from tools_app.acp.sessions import agent_pool
from tools_app.acp.workspaces import folders
from tools_app.models import AcpSession, AcpWorkspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def thread(db):
    return add_thread(UserFactory())


def test_an_answer_streams_with_thoughts_plans_and_usage():
    create_agent()

    ((text, events, _),) = Conversation().ask_all("echo hello")

    kinds = [event.kind for event in events]
    assert text == "one two 1 hello"
    assert kinds == ["thought", "acp-plan", "acp-usage"]
    assert (events[0].text, events[1].payload["entries"][0]["content"]) == ("thinking", "Echo it")
    assert events[2].payload["inputTokens"] == 7


def test_a_tool_call_of_the_agent_is_an_event_with_its_kind():
    create_agent()

    ((_, events, _),) = Conversation().ask_all("edit a.txt hello")

    (call,) = [event.payload for event in events if event.kind == "acp-tool-call"]
    assert call == {"toolCallId": "edit", "title": "Edit a.txt", "kind": "edit"}


def test_a_request_has_one_answer_of_each_id(thread):
    create_agent(permissions="ask")

    ((_, _, request),) = Conversation(thread.pk).ask_all("mislead a.txt", can_ask=True)

    assert [(option.id, option.kind) for option in request.options] == [
        ("no", "reject_once"),
        ("always", "allow_always"),
        ("yes", "allow_once"),
    ]


def test_a_change_that_is_asked_for_as_reading_needs_a_person(thread):
    create_agent(permissions="allow_reads")

    ((_, events, request),) = Conversation(thread.pk).ask_all("pretend a.txt", can_ask=True)

    assert (request.title, request.kind) == ("Write a.txt", "edit")
    assert "acp-file" not in [event.kind for event in events]


def test_a_conversation_keeps_its_process_and_each_version_has_its_own(thread):
    row = create_agent()

    async def converse():
        conversation = Conversation(thread.pk)
        answers = [(await conversation.send("echo a"))[0], (await conversation.send("echo b"))[0]]
        row.title = "Another"
        await asyncio.to_thread(row.save)
        answers.append((await conversation.send("echo c"))[0])
        await end_all(agent_pool())
        return answers

    assert asyncio.run(converse()) == ["one two 1 a", "one two 2 b", "one two 1 c"]


def test_teams_in_one_conversation_share_neither_process_nor_session_nor_folder(thread):
    create_agent(environment={"LOADS": "yes"})

    async def converse():
        owners = ("support", "sales", "support")
        conversations = [Conversation(thread.pk, owner) for owner in owners]
        answers = [(await item.send("write a.txt " + item.owner_id))[0] for item in conversations[:1]]
        answers += [(await item.send("session"))[0] for item in conversations]
        answers.append((await conversations[1].send("read a.txt"))[0])
        await end_all(agent_pool())
        return answers

    _, support, sales, support_again, text = asyncio.run(converse())
    ((later, *_),) = Conversation(thread.pk, "sales").ask_all("session")

    assert sales != support == support_again
    assert later == sales
    assert "There is no such file" in text


def test_an_agent_that_keeps_no_session_is_started_for_each_prompt(thread):
    create_agent(persists_session=False)

    assert Conversation(thread.pk).ask("echo a", "echo b") == ["one two 1 a", "one two 1 b"]
    assert not AcpSession.objects.exists()


def test_a_new_process_loads_the_session_of_the_conversation_or_says_that_it_is_lost(thread):
    row = create_agent(environment={"LOADS": "yes"})
    conversation = Conversation(thread.pk)

    (first,) = conversation.ask("session")
    ((loaded, loaded_events, _),) = conversation.ask_all("session")
    AcpSession.objects.update(session_id="lost")
    row.set_environment({})
    row.save()
    AcpSession.objects.update(version_number=row.last_version_number)
    ((fresh, events, _),) = conversation.ask_all("session")

    assert loaded == first
    assert "acp-session" not in [event.kind for event in loaded_events]
    assert fresh not in (first, "lost")
    assert "does not remember" in events[0].payload["message"]
    assert AcpSession.objects.get().session_id == fresh


def test_a_crash_is_reported_with_the_exit_code_and_masked_errors():
    create_agent(environment={"TOKEN": "hush-hush-hush"})

    with pytest.raises(AgentEnded) as error:
        Conversation().ask("crash")

    assert str(error.value) == "The ACP agent 'Worker' ended (exit 3)."
    assert error.value.stderr == "The key is ••••.\n"


@pytest.mark.parametrize("length", [40, 61, 7000])
def test_the_kept_end_of_the_errors_begins_with_no_part_of_a_secret(length):
    token = f"{'ü' * 30}{'x' * (length - 40)}hush-hush."
    create_agent(environment={"TOKEN": token})

    with pytest.raises(AgentEnded) as error:
        Conversation().ask("crash 300")

    assert "The key is ••••." in error.value.stderr
    assert "hush" not in error.value.stderr


@pytest.mark.parametrize("command", ["boxed", "bare"])
def test_a_prompt_that_takes_too_long_ends_with_all_that_the_agent_started(command):
    create_agent(command_key=command, limits={"promptSeconds": 5})
    hang, sleep = sleeping_task()

    with pytest.raises(AcpError, match="did not finish within 5 seconds"):
        Conversation().ask(hang.replace("hang", "hang deaf"))

    wait_until(lambda: not processes(sleep), 30, "the end of all processes")


def test_a_cancelled_prompt_is_ended(thread):
    create_agent()
    hang, sleep = sleeping_task()

    async def cancel():
        conversation = Conversation(thread.pk)
        task = asyncio.ensure_future(conversation.send(hang))
        while not processes(sleep):
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        while processes(sleep):
            await asyncio.sleep(0.05)
        return task.cancelled()

    assert asyncio.run(asyncio.wait_for(cancel(), 60))


def test_an_answer_without_end_and_a_line_without_end_are_refused():
    create_agent()

    with pytest.raises(AcpError):
        Conversation().ask("flood")


def test_a_disabled_or_deleted_agent_says_so():
    row = create_agent()
    row.is_enabled = False
    row.save()

    with pytest.raises(AcpError, match="is disabled"):
        Conversation().ask("echo a")
    row.delete()
    with pytest.raises(AcpError, match="was deleted"):
        Conversation().ask("echo a")


def test_an_agent_is_authenticated_where_its_record_names_a_method():
    row = create_agent(auth_method_id="token")
    assert Conversation().ask("echo a") == ["one two 1 a"]

    row.auth_method_id = "other"
    row.save()
    with pytest.raises(AcpError, match="reported an error"):
        Conversation().ask("echo a")


def test_a_named_workspace_is_that_of_the_team_alone(settings):
    create_agent(workspace="site")
    AcpWorkspace.objects.create(owner_id="support", name="site")

    assert Conversation().ask("write a.txt x") == ["written"]
    assert Conversation().ask("read a.txt") == ["x"]
    with pytest.raises(AcpError, match="has no workspace 'site'"):
        Conversation(owner_id="sales").ask("read a.txt")
    assert (settings.WORKSPACES_DIR / "support" / "named-site" / "a.txt").read_text() == "x"


def test_an_agent_whose_workspace_is_full_gets_no_further_task(monkeypatch):
    create_agent(workspace="site")
    AcpWorkspace.objects.create(owner_id="support", name="site")
    assert Conversation().ask("write a.txt hello") == ["written"]

    monkeypatch.setattr(folders, "MAX_WORKSPACE_BYTES", 1)
    with pytest.raises(AcpError, match="workspace is full"):
        Conversation().ask("echo a")
