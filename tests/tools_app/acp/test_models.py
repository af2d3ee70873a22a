"""The model of an ACP agent, which its record names."""

import pytest

from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tests.tools_app.acp.conftest import Conversation, create_agent
from tools_app.acp.errors import AcpError

pytestmark = pytest.mark.django_db(transaction=True)
OFFERED = {"MODELS": "small large"}


def test_an_agent_gets_the_model_of_its_record():
    row = create_agent(model="large", environment=OFFERED)
    offered = Conversation().ask("model")

    row.set_environment({"SET_MODEL": "yes"})
    row.save()
    earlier = Conversation().ask("model")

    assert (offered, earlier) == (["llm=large"], ["chosen=large"])


def test_a_model_that_the_agent_does_not_offer_is_an_error_with_those_that_it_does():
    row = create_agent(model="huge", environment=OFFERED)
    with pytest.raises(AcpError) as unknown:
        Conversation().ask("model")

    row.set_environment({})
    row.save()
    with pytest.raises(AcpError) as refused:
        Conversation().ask("model")

    assert str(unknown.value) == (
        "The ACP agent 'Worker' has no model 'huge'. Correct its record. It offers: small, large."
    )
    assert str(refused.value) == (
        "The ACP agent 'Worker' does not let clients choose a model. Leave the model of its record blank."
    )


def test_names_of_models_and_errors_of_an_agent_contain_no_control_characters():
    create_agent(model="huge", environment={"MODELS": "small\x1b[2J lar\u202ege"})
    with pytest.raises(AcpError) as unknown:
        Conversation().ask("model")

    assert str(unknown.value).endswith("It offers: small [2J, lar ge.")


def test_a_loaded_session_has_its_model_although_the_agent_offers_none_there():
    create_agent(model="large", environment={**OFFERED, "LOADS": "yes"})
    conversation = Conversation(add_thread(UserFactory()).pk)

    (first,) = conversation.ask("session")
    (loaded,) = conversation.ask("session")

    assert loaded == first
