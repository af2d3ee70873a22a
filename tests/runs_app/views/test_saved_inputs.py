"""Saved inputs of the playground."""

import json

import pytest
from django.urls import reverse

from runs_app.forms import playground
from runs_app.models import SavedInput
from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs_app.views.conftest import page_text


def save(client, agent, name="Greeting", message="Hello", htmx=True):
    sent = {"input_name": name, "message": message}
    return client.post(
        reverse("runs:save_input", args=[agent.pk]), sent, headers={"HX-Request": "true"} if htmx else {}
    )


def message_text(answer):
    return json.loads(answer.headers["HX-Trigger"])["inputs-changed"]["message"]


def saved_inputs():
    return list(SavedInput.objects.values_list("name", "text"))


def test_an_input_is_saved_under_a_name(editor, ann, agent):
    answer = save(editor, agent, " Greeting ", "Hello\r\nthere")

    assert saved_inputs() == [("Greeting", "Hello\nthere")]
    assert message_text(answer) == "Input Greeting saved."
    assert "Greeting" in page_text(answer)
    assert SavedInput.objects.get().user == ann


def test_saving_under_the_same_name_replaces_the_text(editor, agent):
    save(editor, agent)

    assert message_text(save(editor, agent, message="Good day")) == "Input Greeting replaced."
    assert saved_inputs() == [("Greeting", "Good day")]


@pytest.mark.parametrize(
    ("name", "message", "sentence"),
    [
        ("", "Hello", "Enter a name for the input."),
        ("   ", "Hello", "Enter a name for the input."),
        ("Greeting", "", "Enter a message."),
    ],
)
def test_a_saved_input_needs_name_and_text(editor, agent, name, message, sentence):
    assert message_text(save(editor, agent, name, message)) == sentence
    assert saved_inputs() == []


def test_the_number_of_saved_inputs_is_limited(editor, agent, monkeypatch):
    monkeypatch.setattr("runs_app.views.saved_inputs.MAX_SAVED_INPUTS", 1)
    save(editor, agent)

    assert message_text(save(editor, agent, "Another")) == "You have the maximum of 1 saved inputs. Remove one first."
    assert message_text(save(editor, agent)) == "Input Greeting replaced."
    assert playground.MAX_SAVED_INPUTS > 1


def test_a_saved_input_is_loaded_by_its_url(editor, agent):
    save(editor, agent)

    answer = editor.get(reverse("runs:playground", args=[agent.pk]), {"input": SavedInput.objects.get().pk})

    assert answer.context["form"]["message"].value() == "Hello"


def test_saved_inputs_belong_to_one_user_and_one_agent(editor, agent):
    save(editor, agent)
    own = SavedInput.objects.get()
    other = browser(member("publisher"))

    for client, where in ((other, agent), (editor, AgentFactory())):
        page = client.get(reverse("runs:playground", args=[where.pk]), {"input": own.pk})
        assert page.context["form"]["message"].value() == ""
        client.post(reverse("runs:delete_input", args=[where.pk, own.pk]))

    assert saved_inputs() == [("Greeting", "Hello")]


def test_removing_a_saved_input_twice_is_no_error(editor, agent):
    save(editor, agent)
    address = reverse("runs:delete_input", args=[agent.pk, SavedInput.objects.get().pk])

    answers = [editor.post(address), editor.post(address)]

    assert saved_inputs() == []
    assert {answer.status_code for answer in answers} == {200}


def test_without_javascript_the_message_is_kept(editor, agent):
    answer = save(editor, agent, htmx=False)

    assert answer.context["form"]["message"].value() == "Hello"
    assert "Input Greeting saved." in page_text(answer)
