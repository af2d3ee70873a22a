"""Fixtures of tests of conversations."""

import pytest

from memory_app.history.messages import Author, append_messages
from memory_app.history.threads import create_named_thread
from memory_app.history.wire_messages import parse_wire_message
from memory_app.realms import memory_caller
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member


def add_thread(user, key="t", resource="alice", texts=(("user", "Hello"), ("assistant", "Good day")), **columns):
    """Return a thread of a user's resource with these messages."""
    thread = create_named_thread(memory_caller(user), key, resource, **columns)
    for role, text in texts:
        message = parse_wire_message({"role": role, "content": text}, "message")
        append_messages(thread, message, author=Author(user.pk, user.get_username()))
        thread.refresh_from_db()
    return thread


def recalling_agent(agent_id="recaller", embedder=None, **recall):
    """Return an agent with semantic recall."""
    memory = {"options": {"semanticRecall": recall or True}, **({"embedder": embedder} if embedder else {})}
    return AgentFactory(id=agent_id, model={"provider": "demo", "name": "echo", "delay": 0}, memory=memory)


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", memory="last-messages")


@pytest.fixture
def caller(editor, agent):
    return Caller(api_key(editor))
