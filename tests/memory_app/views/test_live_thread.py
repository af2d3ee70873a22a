"""The page of a thread as it goes on: runs and signals that come, and the form to write to it."""

import pytest
from django.urls import reverse

from memory_app.history.signal_markup import Signal
from memory_app.models import Message, Observation, Participant
from memory_app.realms import user_realm
from memory_app.working import values
from memory_app.working.values import Origin
from runs_app.models import AgentRun
from runs_app.resolution import stored_agents
from runs_app.thread_signals.sending import IfIdle, send_signal
from tests.factories import AgentFactory, UserFactory, member
from tests.memory_app.conftest import add_thread
from tests.page_client import browser
from tests.runs import DEMO, wait_for_end
from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import page_text

pytestmark = pytest.mark.usefixtures("idle_engine")


def address(name="view", key="t"):
    return reverse(f"threads:{name}", args=[key])


@pytest.fixture
def ann(db):
    return member("editor", "support", username="ann")


@pytest.fixture
def thread(ann):
    memory = {"options": {"lastMessages": 3}}
    agent = AgentFactory(id="concierge", name="Concierge", owner_id="support", model=DEMO, memory=memory)
    return add_thread(ann, agent=agent, agent_key=agent.pk)


@pytest.fixture
def client(ann):
    return browser(ann)


def notify(thread, user, **attributes):
    signal = Signal("notification", "The flight is late.", attributes=attributes)
    agent = stored_agents.get("concierge", user=user)
    return send_signal(thread, signal, user=user, agent=agent, if_idle=IfIdle.PERSIST).message


def test_signals_appear_with_their_kind_until_a_run_has_seen_them(client, ann, thread):
    state = client.get(address()).context["state"]
    assert client.get(address("live"), {"state": state}).status_code == 204

    message = notify(thread, ann, source="airline")
    waiting = client.get(address("live"), {"state": state})
    Message.objects.filter(pk=message.pk).update(seen_by=RunFactory().pk)
    seen = client.get(address("live"), {"state": waiting.context["state"]})

    text = page_text(waiting)
    for words in ("Signal: notification", "source = airline", "The flight is late.", "Waits for a run."):
        assert words in text
    assert seen.status_code == 200
    assert "Waits for a run." not in page_text(seen)


def test_the_number_of_messages_comes_along(client, ann, thread):
    page = client.get(address())
    notify(thread, ann)

    live = client.get(address("live"), {"state": page.context["state"]})

    assert "2 messages" in page_text(page)
    assert "3 messages" in page_text(live)


def test_what_is_remembered_comes_along(client, ann, thread):
    state = client.get(address()).context["state"]
    values.replace_text(thread.resource, "- Likes trams", Origin(user_id=ann.pk))

    noted = client.get(address("live"), {"state": state})
    Observation.objects.create(thread=thread, first=1, last=2, text="Said hello.", tokens=3, message_tokens=9)
    observed = client.get(address("live"), {"state": noted.context["state"]})
    Observation.objects.update(is_active=True)
    active = client.get(address("live"), {"state": observed.context["state"]})

    assert "- Likes trams" in page_text(noted)
    assert "Messages 1 to 2 waiting" in page_text(observed)
    assert "Messages 1 to 2 active" in page_text(active)
    assert client.get(address("live"), {"state": active.context["state"]}).status_code == 204


def test_a_run_that_is_not_over_streams_its_answer(client, ann, thread):
    state = client.get(address()).context["state"]
    run = RunFactory(requested_by=ann, agent=thread.agent, agent_key="concierge", thread=thread, open=True)

    page = client.get(address("live"), {"state": state}).content.decode()

    assert f'data-stream="{reverse("runs:stream", args=[run.pk])}"' in page
    assert 'id="thread-messages" data-live=' in client.get(address()).content.decode()


def test_a_message_wakes_a_run_whose_answer_joins_the_page(client, thread):
    sent = {"kind": "message", "message": "Where are you?", "if_idle": "wake"}

    answer = client.post(address("send"), sent, headers={"HX-Request": "true"})
    wait_for_end(AgentRun.objects.get())

    text = page_text(client.get(address()))
    assert "Sent to the agent." in page_text(answer)
    assert text.index("Where are you?") < text.index("You said: Where are you?")
    assert "Concierge Agent" in text
    assert client.post(address("send"), {**sent, "message": "And now?"})["Location"] == address()


def test_signals_have_attributes_and_wait_for_the_next_run(client, thread):
    sent = {"kind": "signal", "message": "Late.", "type": "flight", "attributes": "gate = B4\r\nminutes=40"}

    client.post(address("send"), {**sent, "if_idle": "persist"})

    stored = Message.objects.get(role="signal")
    assert stored.attributes["signal"] == {
        "type": "flight",
        "tagName": "",
        "attributes": {"gate": "B4", "minutes": 40},
    }
    assert not AgentRun.objects.exists()


def test_attributes_are_shown_as_the_agent_reads_them(client, thread):
    attributes = "urgent = true\nminutes = 40.0\nberth = null"
    sent = {"kind": "signal", "message": "Late.", "type": "flight", "attributes": attributes, "if_idle": "persist"}

    client.post(address("send"), sent)

    text = page_text(client.get(address()))
    assert '<flight urgent="true" minutes="40">' in str(Message.objects.get(role="signal").data)
    assert "urgent = true" in text
    assert "minutes = 40.0" not in text
    assert "berth" not in text


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", r'"\ud800"'])
def test_an_attribute_that_no_database_stores_as_json_is_a_text(client, thread, text):
    sent = {
        "kind": "signal",
        "message": "Late.",
        "type": "flight",
        "if_idle": "persist",
        "attributes": f"gate = {text}",
    }

    client.post(address("send"), sent)

    assert Message.objects.get(role="signal").attributes["signal"]["attributes"] == {"gate": text}


@pytest.mark.parametrize(
    ("field", "sent"),
    [
        ("message", {"message": " "}),
        ("message", {"message": "x" * 600_000}),
        ("kind", {"message": "x", "kind": "shout"}),
        ("type", {"message": "x", "kind": "signal", "type": "<b>"}),
        ("attributes", {"message": "x", "kind": "signal", "attributes": "gate"}),
        ("attributes", {"message": "x", "kind": "signal", "attributes": "1st = a"}),
    ],
)
def test_what_cannot_be_sent_stands_at_the_field(client, thread, field, sent):
    answer = client.post(address("send"), {"kind": "message", "if_idle": "wake", **sent})

    assert (answer.status_code, [*answer.context["send_form"].errors]) == (422, [field])
    assert Message.objects.count() == 2


def test_a_message_is_sent_with_wrong_fields_of_a_signal(client, thread):
    """The page hides these fields of a message, and with them what is wrong there."""
    sent = {"kind": "message", "message": "Hello", "if_idle": "persist", "type": "<b>", "attributes": "gate"}

    assert client.post(address("send"), sent).status_code == 302
    assert "Hello" in page_text(client.get(address()))


def test_publishers_read_along_and_only_participants_write(thread):
    realm = {"realm": thread.realm}
    participant, guest = member("editor", "support"), member("viewer", "support")
    for user in (participant, guest):
        Participant.objects.create(thread=thread, user=user, name=f"P{user.pk}", functional_role="reviewer")
    sent = {"kind": "message", "message": "Hello", "if_idle": "persist"}

    for user, reads, writes in (
        (member("publisher", "support"), 200, 404),
        (member("editor", "support"), 404, 404),
        (UserFactory(), 404, 404),
        (guest, 200, 404),
        (participant, 200, 302),
    ):
        reader = browser(user)
        assert reader.get(address(), realm).status_code == reads
        assert reader.get(address("live"), realm).status_code == reads
        if reads == 200:
            assert (reader.get(address(), realm).context["send_form"] is not None) == (writes == 302)
        assert reader.post(f"{address('send')}?realm={thread.realm}", sent).status_code == writes

    assert Message.objects.get(role="signal").author == participant
    assert "reviewer" in page_text(browser(participant).get(address(), realm))


def test_the_window_has_the_last_messages_and_their_tokens(client, ann, thread):
    add_thread(ann, texts=[("user", "x" * 400), ("assistant", "y" * 40)])

    window = client.get(address()).context["window"]

    assert (window.messages, window.max_messages, window.max_tokens) == (3, 3, 8000)
    assert window.tokens == 100 + 10 + 2
    assert thread.realm == user_realm(ann.pk)


def test_an_unchanged_thread_takes_few_queries(client, thread, django_assert_num_queries):
    state = client.get(address()).context["state"]

    with django_assert_num_queries(6):
        client.get(address("live"), {"state": state})
