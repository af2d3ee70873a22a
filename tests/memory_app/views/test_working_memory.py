"""The working memory beside a thread: editing, history and undo."""

import json
from uuid import uuid4

import pytest
from django.urls import reverse

from memory_app.models import Participant
from memory_app.working import values
from runs_app.models import AgentRun
from tests.factories import UserFactory, member
from tests.form_submission import form_data
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


def test_only_runs_that_can_be_opened_have_a_link(page, thread, editor, agent):
    own, theirs = RunFactory(agent=agent, requested_by=editor), RunFactory(agent=agent, requested_by=UserFactory())
    deleted = uuid4()
    for number, run_id in enumerate((own.pk, theirs.pk, deleted)):
        values.replace_text(thread.resource, str(number), values.Origin(run_id=run_id))

    html = page.get(URL).content.decode()

    assert html.count("by a run") == 3
    assert [run_id for run_id in (own.pk, theirs.pk, deleted) if f"/runs/{run_id}" in html] == [own.pk]


def test_undo_beside_a_thread_leads_back_to_the_thread(page, thread):
    page.post(URL, {"text": "One", "revision": 0})
    page.post(URL, {"text": "Two", "revision": 1})
    undo = reverse("threads:restore_working_memory", args=["t", 1])
    beside = page.get(THREAD).text

    form = beside.split(f'action="{undo}"')[1].split("</form>")[0]

    assert page.post(undo, form_data(form).dict()).url == THREAD
    assert page.post(undo).url == URL


def test_a_change_of_somebody_else_is_not_overwritten(page, thread):
    values.replace_text(thread.resource, "Theirs", values.Origin())

    answer = page.post(URL, {"text": "Mine", "revision": 0})

    assert answer.status_code == 422
    assert "Somebody else changed it meanwhile." in answer.content.decode()
    thread.resource.refresh_from_db()
    assert thread.resource.working_memory == "Theirs"


@pytest.fixture
def profile(thread, agent):
    properties = {
        "name": {"type": "string", "description": "As the person wants to be called"},
        "age": {"type": "integer"},
        "pets": {"type": "array", "items": {"type": "string"}},
        "diet": {"enum": ["any", "vegan"]},
        "home": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    agent.edit({"memory": {"options": {"workingMemory": {"schema": schema}}}})
    return schema


def stored(thread):
    thread.resource.refresh_from_db()
    return thread.resource.working_memory and json.loads(thread.resource.working_memory)


def test_an_object_is_edited_by_an_input_for_each_property(page, thread, profile):
    inputs = {"text-name": "Ada", "text-age": "36", "text-pets": "Rex\r\nTom", "text-diet": '"vegan"'}
    inputs["text-home"] = '{"city": "London"}'
    others = {"text-row-name": ["hobby", ""], "text-row-kind": ["text", "text"], "text-row-value": ["chess", ""]}

    page.post(URL, {**inputs, **others, "text-view": "fields", "revision": 0})
    inputs_after = page.get(URL).context["value"].inputs

    expected = {"name": "Ada", "age": 36, "pets": ["Rex", "Tom"], "diet": "vegan", "home": {"city": "London"}}
    assert stored(thread) == {**expected, "hobby": "chess"}
    assert [inputs_after.texts["age"], inputs_after.texts["pets"]] == ["36", "Rex\nTom"]
    assert inputs_after.rows[0].name == "hobby"

    page.post(URL, {"text-name": "", "text-view": "fields", "revision": 1})
    assert stored(thread) is None


def test_an_object_is_edited_as_json(page, thread, profile):
    before = {"text-name": "Ada", "text-age": "36", "revision": 0}

    as_json = page.post(URL, {**before, "show": "text:json"})
    text = as_json.context["value"].json_text
    page.post(URL, {"text": text.replace("36", "37"), "text-view": "json", "revision": 0})

    assert as_json.status_code == 200
    assert json.loads(text) == {"name": "Ada", "age": 36}
    assert stored(thread) == {"name": "Ada", "age": 37}


@pytest.mark.parametrize("data", [{"text": '{"name": "Ada", "age": "nine"}'}, {"text-row-name": "age"}])
def test_an_object_shows_its_faults(page, thread, profile, data):
    by_input = {"text-name": "Ada", "text-row-kind": "text", "text-row-value": "nine"}

    answer = page.post(URL, {**(data if "text" in data else data | by_input), "revision": 0})

    assert answer.status_code == 422
    assert answer.context["form"].errors["text"] == ["age: 'nine' is not of type 'integer'."]
    assert stored(thread) is None


def test_a_number_with_letters_is_named_at_its_input(page, thread, profile):
    answer = page.post(URL, {"text-name": "Ada", "text-age": "nine", "revision": 0})

    assert answer.status_code == 422
    assert {member.name: error for member, _, error in answer.context["value"].inputs.fields}["age"]
    assert stored(thread) is None


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


def test_who_left_the_team_does_not_read_the_schema_of_its_agent(page, editor, thread, profile):
    values.replace_text(thread.resource, "{}", values.Origin())
    assert "vegan" in page.get(URL).content.decode()
    editor.memberships.update(owner_id="sales")

    pages = [page.get(url) for url in (URL, THREAD)]

    assert [answer.status_code for answer in pages] == [200, 200]
    assert not any("vegan" in answer.content.decode() for answer in pages)
