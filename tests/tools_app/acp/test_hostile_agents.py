"""Agents that break the protocol: each prompt ends in time, and stores nothing invalid."""

import json
import logging
import sys
from pathlib import Path

import pytest

from tests.factories import UserFactory, member
from tests.memory_app.conftest import add_thread
from tests.runs import chunks, start_run, wait_for_end
from tests.tools_app.acp import hostile_agent
from tests.tools_app.acp.conftest import Conversation, create_agent
from tests.tools_app.acp.test_runs import agent, answer, task, wait_for_call
from tools_app.acp.errors import AcpError
from tools_app.models import AcpSession

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def hostile(commands, settings):
    settings.ACP_COMMANDS = {
        "hostile": {"argv": [sys.executable, str(Path(hostile_agent.__file__))], "sandbox": "none"}
    }


def test_messages_that_break_the_protocol_are_left_out(caplog):
    create_agent(command_key="hostile", persists_session=False, permissions="reject")

    answers = Conversation().ask(*hostile_agent.ATTACKS)

    assert [name for name, text in zip(hostile_agent.ATTACKS, answers, strict=True) if "the end" not in text] == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_an_error_that_is_no_object_is_one_of_the_agent():
    create_agent(command_key="hostile", limits={"promptSeconds": 60})

    with pytest.raises(AcpError, match="The ACP agent 'Worker' reported an error: Error"):
        Conversation().ask("odd-error")


@pytest.mark.parametrize("name", hostile_agent.ENDS)
def test_an_agent_without_an_answer_is_ended_with_a_reason(name):
    create_agent(command_key="hostile", limits={"promptSeconds": 3})

    with pytest.raises(AcpError) as error:
        Conversation().ask(name)

    assert str(error.value).startswith("The ACP agent 'Worker' ")


@pytest.mark.parametrize("session_id", ["a\0b", "a\ud800b", "x" * 5000])
def test_a_session_whose_id_cannot_be_stored_is_used_and_not_kept(settings, session_id):
    settings.ACP_COMMANDS["hostile"]["env"] = ["SESSION_ID"]
    environment = {"SESSION_ID": json.dumps(session_id)}
    create_agent(command_key="hostile", permissions="reject", environment=environment)
    conversation = Conversation(add_thread(UserFactory()).pk)

    answers = [conversation.ask("no-options")[0] for _ in range(2)]

    assert ["the end" in text for text in answers] == [True, True]
    assert not AcpSession.objects.exists()


@pytest.mark.parametrize("name", ["nul", "odd-numbers", "deep", "nul-request", "large-request"])
@pytest.mark.parametrize("way", ["tool", "sub-agent"])
def test_a_run_stores_what_an_agent_sends(name, way, idle_engine, ended_agents):
    """PostgreSQL stores neither the character NUL nor half of a surrogate pair."""
    create_agent(command_key="hostile", permissions="reject")
    worker = agent() if way == "tool" else agent(tools=[], agents=["acp-worker"])
    message = task(name) if way == "tool" else f"Use acp-worker {json.dumps({'prompt': name})}"

    run = wait_for_end(start_run(worker, member("editor", "support"), message), 60)

    assert run.status == run.Status.SUCCEEDED
    (result,) = chunks(run, "tool-result")
    assert "the end" in str(result["payload"]["result"])


@pytest.mark.parametrize("way", ["tool", "sub-agent"])
def test_an_answer_whose_id_cannot_be_stored_is_not_offered(way, idle_engine, ended_agents):
    """PostgreSQL stores no NUL in the schema of the answer, so that the run failed."""
    create_agent(command_key="hostile", permissions="ask")
    worker = agent() if way == "tool" else agent(tools=[], agents=["acp-worker"])
    message = task("nul-option") if way == "tool" else f"Use acp-worker {json.dumps({'prompt': 'nul-option'})}"
    editor = member("editor", "support")

    run = start_run(worker, editor, message)
    call = wait_for_call(run)

    assert call.resume_schema["properties"]["optionId"]["enum"] == ["yes"]
    assert [option["optionId"] for option in call.payload["permissionRequest"]["options"]] == ["yes"]
    answer(call, editor)
    assert wait_for_end(run, 60).status == run.Status.SUCCEEDED
