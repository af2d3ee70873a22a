"""Pages of conversations."""

import json
import uuid

import pytest
from django.urls import reverse

from agents_app.models import Agent
from memory_app.models import Message, Thread
from memory_app.views import threads
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.form_submission import form_data
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

LIST = reverse("threads:list")


@pytest.fixture
def ann():
    return member("editor", "support", username="ann")


@pytest.fixture
def thread(ann):
    agent = AgentFactory(id="concierge", name="Concierge", owner_id="support")
    texts = [("user", "My colour is turquoise."), ("assistant", "Noted.")]
    return add_thread(ann, texts=texts, title="Colours", agent=agent, agent_key=agent.pk)


def test_a_user_reads_exports_and_deletes_an_own_thread(client, ann, thread):
    client.force_login(ann)

    listed = client.get(LIST).content.decode()
    page = client.get(reverse("threads:view", args=["t"])).content.decode()
    lines = b"".join(client.get(reverse("threads:export", args=["t"])).streaming_content).splitlines()

    assert "Colours" in listed
    assert 'data-label="Messages" class="align-right">2<' in listed
    assert page.index("My colour is turquoise.") < page.index("Noted.")
    assert ">ann</h2>" in page
    assert [json.loads(line).get("role") for line in lines] == [None, "user", "assistant"]
    question = client.get(reverse("threads:delete", args=["t"])).content.decode()
    assert "This cannot be undone." in question
    assert client.post(reverse("threads:delete", args=["t"])).status_code == 302
    assert not Thread.objects.exists()
    assert "No conversations yet" in client.get(LIST).content.decode()


def test_a_conversation_without_a_title_is_listed_with_its_first_words(client, ann, thread):
    client.force_login(ann)

    with_title = client.get(LIST).text
    Thread.objects.update(title="")
    without_title = client.get(LIST).text

    assert "My colour is turquoise." not in with_title
    assert '<span class="row-note" dir="auto">My colour is turquoise.</span>' in without_title


def test_the_first_words_may_have_come_as_a_signal(client, ann, thread):
    client.force_login(ann)
    Thread.objects.update(title="")
    signal = {"signal": {"type": "user", "tagName": "", "attributes": {}}}
    Message.objects.filter(text="My colour is turquoise.").update(role="signal", attributes=signal)

    assert '<span class="row-note" dir="auto">My colour is turquoise.</span>' in client.get(LIST).text


def test_the_dialog_of_another_thread_with_the_id_deletes_nothing(client, ann, thread):
    client.force_login(ann)
    url = reverse("threads:delete", args=["t"])
    form = form_data(client.get(url).content.decode())
    thread.delete()
    add_thread(ann, "t")

    refused = client.post(url, form)

    assert refused.status_code == 409
    assert "It was deleted in the meantime, and this one was created with its ID." in refused.content.decode()
    assert Thread.objects.exists()


@pytest.mark.parametrize("is_member", [True, False])
def test_a_user_who_left_the_team_sees_the_id_of_the_agent_only(client, ann, thread, is_member):
    run = RunFactory(agent=thread.agent, requested_by=ann, thread=thread)
    thread.messages.filter(role="assistant").update(run_id=run.pk)
    if not is_member:
        ann.memberships.all().delete()
    client.force_login(ann)

    texts = [client.get(url).text for url in (LIST, reverse("threads:view", args=["t"]))]

    assert ["Concierge" in text for text in texts] == [is_member] * 2
    assert is_member or all("concierge" in text for text in texts)


@pytest.mark.parametrize(("search", "is_found"), [("colOUR", True), ("t", True), ("shapes", False)])
def test_threads_are_found_by_title_and_id(client, ann, thread, search, is_found):
    client.force_login(ann)

    text = client.get(LIST, {"q": search}).text

    assert ("Colours" in text, "No matching conversations" in text) == (is_found, not is_found)
    assert f'value="{search}"' in text


@pytest.mark.parametrize("search", ["überBLICK", "Überblick", "ÜBER"])
def test_a_title_is_found_in_upper_or_lower_case(client, ann, thread, search):
    Thread.objects.update(title="Ein Überblick")
    client.force_login(ann)

    assert "Ein Überblick" in client.get(LIST, {"q": search}).text
    assert "Ein Überblick" not in client.get(LIST, {"q": "Unterblick"}).text


def test_publishers_read_the_threads_of_an_agent_and_others_do_not(client, ann, thread):
    realm = {"realm": thread.realm}
    for user, may_read in (
        (member("publisher", "support"), True),
        (member("editor", "support"), False),
        (member("manager", "sales"), False),
        (UserFactory(), False),
    ):
        client.force_login(user)
        listed = client.get(LIST, {"agent": "concierge"}).content.decode()
        page = client.get(reverse("threads:view", args=["t"]), realm)
        assert ("Colours" in listed, page.status_code == 200) == (may_read, may_read)
        assert (b"turquoise" in page.content) == may_read
        assert client.get(reverse("threads:export", args=["t"]), realm).status_code == (200 if may_read else 404)
        assert client.post(reverse("threads:delete", args=["t"]) + f"?realm={thread.realm}").status_code == 404
    assert Thread.objects.exists()


def test_of_many_agents_some_are_offered_and_any_can_be_typed(client, ann, thread, monkeypatch):
    monkeypatch.setattr(threads, "MAX_AGENT_CHOICES", 1)
    first = AgentFactory(id="archivist", name="Archivist", owner_id="support")
    add_thread(ann, key="other", agent=first, agent_key=first.pk)
    client.force_login(member("publisher", "support"))

    mine, of_agent = client.get(LIST).text, client.get(f"{LIST}?agent=concierge").text

    assert '<option value="archivist">' in mine
    assert "Type the ID of an agent. The first 1 are offered." in mine
    assert '<input id="thread-agent" name="agent" value="concierge" list="thread-agents"' in of_agent


def test_an_agent_that_moves_takes_no_conversations_to_the_new_team(client, ann, thread):
    Thread.objects.update(agent_owner_id="support")
    Agent.objects.get(pk="concierge").change_owner("sales")

    for user, expected in ((member("publisher", "sales"), 404), (member("publisher", "support"), 404), (ann, 200)):
        client.force_login(user)
        assert client.get(reverse("threads:view", args=["t"]), {"realm": thread.realm}).status_code == expected
        assert ("Colours" in client.get(LIST).content.decode()) == (expected == 200)


@pytest.mark.parametrize("start", ["threads", "signals", "clone"])
def test_a_conversation_stores_the_team_of_its_agent(start):
    AgentFactory(id="concierge", owner_id="support", memory={"options": {}})
    caller = Caller(api_key(member("editor", "support")))
    query = "?agentId=concierge"
    if start in ("threads", "clone"):
        caller.post(f"/api/memory/threads{query}", {"threadId": "t", "resourceId": "alice"})
    if start == "signals":
        call = {"signal": {"type": "user-message", "contents": "Hi"}, "threadId": "t", "resourceId": "alice"}
        caller.post("/api/agents/concierge/signals", {**call, "ifIdle": {"behavior": "persist"}})
    if start == "clone":
        assert caller.post(f"/api/memory/threads/t/clone{query}", {"newThreadId": "copy"}).status_code == 200

    assert {*Thread.objects.values_list("agent_owner_id", flat=True)} == {"support"}


def test_the_own_resource_of_a_user_is_shown_by_name(client, ann, django_assert_num_queries):
    agents = AgentFactory.create_batch(3, owner_id="support")
    texts = [("user", "Hello"), ("assistant", "Good day")]
    for agent in agents:
        add_thread(ann, key=f"of-{agent.pk}", resource=f"u{ann.pk}", texts=texts, agent=agent, agent_key=agent.pk)
    client.force_login(ann)

    with django_assert_num_queries(9):
        listed = client.get(LIST).content.decode()
    page = client.get(reverse("threads:view", args=[f"of-{agents[0].pk}"])).content.decode()

    assert listed.count('data-label="Resource" dir="auto">ann<') == 3
    assert f'<span dir="auto">ann</span> <code>u{ann.pk}</code>' in page
    assert "Add people" in page
    assert f'<h2 dir="auto">{agents[0].name}</h2>' in page


def test_an_answer_of_a_deleted_run_names_no_agent(client, ann, thread):
    thread.messages.filter(role="assistant").update(run_id=uuid.uuid4())
    client.force_login(ann)

    page = client.get(reverse("threads:view", args=["t"])).content.decode()

    assert '<h2 dir="auto">Agent</h2>' in page
    assert ">Agent</span>" not in page


def test_a_long_conversation_begins_with_a_link_to_its_earlier_messages(client, ann):
    add_thread(ann, texts=[("user", f"Message {number}.") for number in range(1, 61)])
    client.force_login(ann)

    newest = client.get(reverse("threads:view", args=["t"])).content.decode()
    oldest = client.get(reverse("threads:view", args=["t"]), {"page": 2}).content.decode()

    assert newest.index('href="?page=2"') < newest.index("Message 11.") < newest.index("Message 60.")
    assert "Earlier messages" in newest
    assert "Earlier messages" not in oldest
    assert "Later</a>" in oldest
