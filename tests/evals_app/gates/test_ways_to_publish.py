"""Release gates hold for every way that makes a version live: pages, API, admin, imports, the trash and code."""

import json
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import GateNotMet
from agents_app.models import Agent
from agents_app.views.editor.saving import NO_REASON_MESSAGE
from evals_app.models import Dataset, ReleaseGate
from jobs_app.runner import run_claimed
from tests.agent_exchange import import_file, record
from tests.agents_app.admin.test_publishing_drafts import messages
from tests.api_client import Caller, agent_path
from tests.evals_app.experiment_runs import make_dataset
from tests.evals_app.gates.test_gates import REASON, live_number
from tests.factories import UserFactory, api_key, member
from tests.page_client import browser, editor_form
from tests.versions_app.admin.test_versions import act

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(agent):
    return agent.versions.get(version_number=2)


def caller():
    return Caller(api_key(member("publisher")))


def test_an_import_that_publishes_refuses_the_record(agent):
    result = import_file(caller(), [record("concierge", instructions="Three")], "&publish=true")

    (line,) = result["records"]
    assert (line["action"], live_number(agent)) == ("refuse", 1)
    assert line["reason"] == REASON.replace("Version 2", "Version 3")


def test_the_check_of_a_file_names_the_gate_that_publishing_would_miss(agent):
    """Imported as a draft, the change bypasses no gate."""
    line = json.dumps(record("concierge", instructions="Three")).encode()
    publisher = browser(member("publisher"))

    answer = publisher.post(reverse("exchange:upload"), {"file": SimpleUploadedFile("in.jsonl", line)})
    run_claimed(answer.url.rsplit("/", 1)[1])

    html = unescape(publisher.get(answer.url).content.decode())
    assert "1 existing agent will be changed." in html
    assert f"“Import and publish” rejects it: {REASON.replace('Version 2', 'Version 3')}" in html


def test_an_import_beside_it_stays_a_draft(agent):
    result = import_file(caller(), [record("concierge", instructions="Three")])

    assert ([line["action"] for line in result["records"]], live_number(agent)) == (["update"], 1)
    assert agent.instructions == "Three"


@pytest.mark.parametrize("action", ["publish", "restore"])
def test_publishing_in_the_admin_is_refused(agent, draft, client, action):
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    with change(publish=False):
        agent.edit({"instructions": "Three"})

    answer = act(client, draft, action)

    text = " ".join(messages(answer))
    assert "no experiment has tested it." in text
    assert ("version 4 of concierge. It stays a draft." in text) is (action == "restore")
    assert live_number(agent) == 1


def test_publishing_in_the_editor_is_refused(agent):
    page = browser(member("publisher"))
    form = editor_form(agent, instructions="Three")

    answer = page.post(reverse("agents:edit", args=["concierge"]), {**form, "publish": "yes"})

    assert live_number(agent) == 1
    assert "no experiment has tested it" in answer.content.decode()
    assert "Not saved.</strong> Version " in answer.content.decode()  # not at the sub-agents
    assert "Save a draft, and run the experiment on the page Quality." in answer.content.decode()


def test_a_manager_who_publishes_without_a_reason_is_asked_for_it_at_its_field(agent):
    page = browser(member("manager"))
    form = editor_form(agent, instructions="Three")

    answer = page.post(reverse("agents:edit", args=["concierge"]), {**form, "publish": "yes"})

    assert (answer.status_code, live_number(agent)) == (422, 1)
    assert answer.context["form"].errors == {"bypass_reason": [NO_REASON_MESSAGE]}


@pytest.mark.parametrize("role", ["publisher", "manager"])
def test_the_review_of_the_editor_shows_the_gate_and_lets_managers_bypass_it(agent, role):
    page = browser(member(role))
    form = editor_form(agent, instructions="Three")
    headers = {"HX-Request": "true"}

    review = page.post(reverse("versions:review", args=["concierge"]), form, headers=headers).content.decode()
    sent = {**form, "publish": "yes", "bypass_reason": "Urgent: the old text is wrong."}
    page.post(reverse("agents:edit", args=["concierge"]), sent)

    assert "A release gate is not met." in review
    assert ('name="bypass_reason"' in review) is (role == "manager")
    assert live_number(agent) == (3 if role == "manager" else 1)


@pytest.fixture
def restore(agent):
    """Delete the agent, and return a function that restores it."""
    publisher = caller()
    assert publisher.delete(agent_path("concierge")).status_code == 200
    (deleted,) = publisher.get("/api/stored/deleted-agents").body["deletedAgents"]
    return lambda **body: publisher.post(f"/api/stored/deleted-agents/{deleted['id']}/restore", body)


@pytest.mark.parametrize("agent_id", ["concierge", "another"])
def test_a_detour_through_the_trash_keeps_the_gates(agent, restore, agent_id):
    assert restore(id=agent_id).status_code == 201

    row = Agent.objects.with_versions().get(pk=agent_id)
    assert (row.active_version.version_number, row.has_draft) == (1, True)
    with pytest.raises(GateNotMet):
        row.head_version.activate()


def test_an_agent_whose_gate_lost_its_dataset_is_restored_with_another_one(agent, restore):
    Dataset.objects.all().delete()
    make_dataset(pk="other")

    refused = restore()
    make_dataset("One")

    assert (refused.status_code, refused.body["code"]) == (409, "not_restorable")
    assert "Create a dataset with this ID first." in refused.body["error"]
    assert restore().status_code == 201
    assert ReleaseGate.objects.get().agent_id == "concierge"
