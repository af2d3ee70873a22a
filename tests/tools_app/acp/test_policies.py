"""The policies of ACP agents: what is allowed, rejected or asked without and with a person."""

import pytest

from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tests.tools_app.acp.conftest import Conversation, create_agent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(db):
    return Conversation(add_thread(UserFactory()).pk)


def test_reading_is_allowed_and_a_change_waits_for_a_person(conversation, settings):
    create_agent(permissions="allow_reads")

    look, edit = conversation.ask_all("look", "edit a.txt hello", can_ask=True)
    (unasked,) = conversation.ask("edit a.txt hello")

    assert (look[0], look[2]) == ("yes", None)
    assert [event.payload["allowed"] for event in look[1] if event.kind == "acp-permission"] == [True]
    assert (edit[2].title, edit[2].paths) == ("Edit a.txt", ("a.txt",))
    assert unasked == "not edited"
    assert list(settings.WORKSPACES_DIR.rglob("a.txt")) == []


def test_everything_is_rejected_also_where_a_person_could_be_asked(conversation, settings):
    create_agent(permissions="reject")

    answers = conversation.ask_all("look", "edit a.txt hello", "write a.txt hello", can_ask=True)

    assert [text for text, *_ in answers] == ["no", "not edited", "failed: The write was not allowed."]
    assert [request for *_, request in answers] == [None] * 3
    assert [event.payload["allowed"] for event in answers[1][1] if event.kind == "acp-permission"] == [False]
    assert list(settings.WORKSPACES_DIR.rglob("a.txt")) == []


def test_the_words_of_a_request_cannot_look_like_others(conversation):
    create_agent(permissions="ask")

    ((_, _, request),) = conversation.ask_all("disguise", can_ask=True)

    assert (request.title, [option.name for option in request.options]) == ("Read  txt.a [2J", [" oN"])


def test_terminals_are_neither_offered_nor_opened(conversation):
    create_agent()

    assert conversation.ask("terminal") == ["offered: False, Method not found"]
