"""The working memory beside a thread: editing, history and undo."""

import pytest
from django.urls import reverse

from memory_app.models import Participant
from memory_app.working import values
from runs_app.models import AgentRun
from tests.factories import UserFactory, member
from tests.memory_app.conftest import add_thread
from tests.page_client import browser
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

URL = reverse("threads:working_memory", args=["t"])
THREAD = reverse("threads:view", args=["t"])


@pytest.fixture
def thread(editor, agent):
    agent.edit({"memory": {"options": {"workingMemory": {"template": "# Person"}}}})
    return add_thread(editor, agent=agent)


@pytest.fixture
def page(editor):
    return browser(editor)


def test_it_is_edited_undone_and_restored(page, thread):
    blank = page.get(URL)
    page.post(URL, {"text": "One", "revision": 0})
    page.post(URL, {"text": "Two", "revision": 1})
    beside = page.get(THREAD).content.decode()
    page.post(reverse("threads:restore_working_memory", args=["t", 1]))

    assert blank.context["form"]["text"].value() == "# Person"
    assert "Two" in beside
    assert reverse("threads:restore_working_memory", args=["t", 1]) in beside
    thread.resource.refresh_from_db()
    assert (thread.resource.working_memory, thread.resource.working_revision) == ("One", 3)
    assert page.post(reverse("threads:restore_working_memory", args=["t", 9])).status_code == 404


def test_a_change_of_somebody_else_is_not_overwritten(page, thread):
    values.replace_text(thread.resource, "Theirs", values.Origin())

    answer = page.post(URL, {"text": "Mine", "revision": 0})

    assert answer.status_code == 422
    assert "Somebody else changed it meanwhile." in answer.content.decode()
    thread.resource.refresh_from_db()
    assert thread.resource.working_memory == "Theirs"


def test_an_object_shows_its_faults(page, thread, agent):
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    agent.edit({"memory": {"options": {"workingMemory": {"schema": schema}}}})

    answer = page.post(URL, {"text": '{"age": "nine"}', "revision": 0})

    assert answer.context["form"].errors["text"] == ["age: 'nine' is not of type 'integer'."]


def test_who_may_see_it(thread, agent, editor):
    values.replace_text(thread.resource, "turquoise", values.Origin())
    participant = member("viewer")
    Participant.objects.create(thread=thread, user=participant, name="Bob")
    query = f"?realm={thread.realm}"

    for user, status in ((member("publisher"), 200), (participant, 404), (UserFactory(), 404)):
        client = browser(user)
        answer = client.get(f"{URL}{query}")
        assert answer.status_code == status
        assert client.post(f"{URL}{query}", {"text": "x", "revision": 1}).status_code == 404
        assert client.post(reverse("threads:restore_working_memory", args=["t", 0])).status_code == 404
        if status == 404:
            assert "turquoise" not in client.get(f"{THREAD}{query}").content.decode()
    thread.resource.refresh_from_db()
    assert thread.resource.working_revision == 1


def test_the_page_of_a_run_shows_what_it_remembered(page, thread, agent, editor):
    values.replace_text(thread.resource, "turquoise", values.Origin())
    working = {"scope": "resource", "revision": 1}
    run = RunFactory(agent=agent, requested_by=editor, thread=thread, resource=thread.resource)
    AgentRun.objects.filter(pk=run.pk).update(remembered={"messages": 2, "workingMemory": working})

    content = page.get(reverse("runs:view", args=[run.pk])).content.decode()

    assert "What it remembered" in content
    assert "revision 1 of the resource" in content
    assert "turquoise" in content
