"""Pages of release gates: managers make, change, lower and delete them, and bypass them with a reason."""

import uuid
from functools import partial

import pytest
from django.urls import reverse
from django.utils import timezone

from agents_app.editing.change_context import change
from evals_app.forms.gates import GateForm
from evals_app.models import Dataset, Experiment, ReleaseGate
from evals_app.views import gates
from evals_app.views.lookups import get_page_dataset
from tests.concurrently import run_concurrently
from tests.evals_app.experiment_runs import make_dataset
from tests.evals_app.gates.test_gates import experiment_of, live_number
from tests.factories import AgentFactory, MembershipFactory, member
from tests.page_client import browser, editor_form
from versions_app.views.publish import NO_REASON_MESSAGE

pytestmark = pytest.mark.django_db

ADD = "/agents/concierge/gates/add"
FIELDS = {"dataset": "support", "scorer": "exact", "statistic": "mean", "minimum": "0.8", "mode": "enforce"}


@pytest.fixture
def agent():
    make_dataset("One", owner_id="support")
    return AgentFactory(id="concierge", owner_id="support", instructions="One")


@pytest.fixture
def manager(client, agent):
    user = member("manager", "support")
    client.force_login(user)
    return user


@pytest.fixture
def gate(agent):
    return ReleaseGate.objects.create(
        agent=agent, owner_id="support", dataset_id="support", scorer="exact", minimum=0.8
    )


@pytest.fixture
def draft(agent, gate):
    with change(publish=False):
        return agent.edit({"instructions": "Two"})


def text(answer, status=200):
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def test_a_gate_takes_no_dataset_that_its_team_may_not_use(client, manager):
    MembershipFactory(user=manager, owner_id="sales", role="viewer")
    make_dataset("One", pk="leads", owner_id="sales")
    make_dataset("One", pk="common")

    page = text(client.get(ADD))
    refused = client.post(ADD, FIELDS | {"dataset": "leads"})
    added = client.post(ADD, FIELDS | {"dataset": "common"})

    assert ("Common" in page, "Leads" in page, refused.status_code) == (True, False, 422)
    assert (added.status_code, ReleaseGate.objects.get().dataset_id) == (302, "common")


def test_a_gate_keeps_the_dataset_of_the_former_team_of_its_agent(client, agent, gate):
    user = member("manager", "sales")
    MembershipFactory(user=user, owner_id="support", role="viewer")
    agent.change_owner("sales")
    client.force_login(user)

    lowered = client.post(f"/agents/concierge/gates/{gate.pk}", FIELDS | {"minimum": "0.5"})

    gate.refresh_from_db()
    assert (lowered.status_code, gate.minimum, gate.dataset_id) == (302, 0.5, "support")


def test_a_manager_adds_lowers_and_deletes_a_gate(client, manager):
    added = client.post(ADD, FIELDS)
    gate = ReleaseGate.objects.get()
    path = f"/agents/concierge/gates/{gate.pk}"
    lowered = client.post(path, FIELDS | {"minimum": "0.5", "for_team": "on", "mode": "warn"})

    assert (added.url, lowered.url) == ("/agents/concierge/quality",) * 2
    assert (gate.agent_id, gate.minimum, gate.max_failed, gate.created_by) == ("concierge", 0.8, 0, manager)
    gate.refresh_from_db()
    assert (gate.agent_id, gate.owner_id, gate.minimum, gate.mode) == (None, "support", 0.5, "warn")
    page = text(client.get("/agents/concierge/quality"))
    assert "All agents of the team" in page
    assert "Not met, warns only" in page
    assert "Equals the ground truth over Support" in page
    assert "The gate asks for 0.50 on &#x27;Equals the ground truth&#x27;" in text(client.get(f"{path}/delete"))
    client.post(f"{path}/delete")
    assert not ReleaseGate.objects.exists()


def test_deleting_a_gate_in_its_dialog_loads_the_page_again(client, manager, gate):
    """A redirect would be followed, and the whole page put into the place of the dialog."""
    path = f"/agents/concierge/gates/{gate.pk}/delete"

    deleted = client.post(path, headers={"HX-Request": "true"})

    assert (deleted.status_code, deleted.headers["HX-Redirect"]) == (200, "/agents/concierge/quality")
    assert "The release gate was deleted." in text(client.get("/agents/concierge/quality"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"minimum": ""}, "Set a minimum, a maximum or both."),
        ({"maximum": "0.7"}, "This is below the minimum"),
        ({"minimum": "high"}, "Enter a number."),
        ({"dataset": "secret"}, "Select a valid choice."),
        ({"max_age_days": "0"}, "greater than or equal to 1"),
    ],
)
def test_a_faulty_gate_is_named_at_its_field_and_not_stored(client, manager, fields, message):
    make_dataset(pk="secret", owner_id="elsewhere")

    assert message in text(client.post(ADD, FIELDS | fields), 422)
    assert not ReleaseGate.objects.exists()


def test_all_faults_of_a_gate_are_named_at_once(manager, agent):
    fields = FIELDS | {"dataset_version": "9", "maximum": "0.7", "max_failed": "few"}

    errors = GateForm(fields, ReleaseGate(agent=agent), agent, Dataset.objects.all()).errors
    without_bounds = GateForm(fields | {"minimum": "", "maximum": "high"}, ReleaseGate(), agent, Dataset.objects.all())

    assert {*errors} == {"dataset_version", "maximum", "max_failed"}
    assert {*without_bounds.errors} == {"dataset_version", "maximum", "max_failed"}


def test_a_gate_over_an_archived_dataset_keeps_it_when_it_is_changed(client, manager, gate):
    make_dataset("Two", pk="first", owner_id="support")
    make_dataset("Two", pk="past", owner_id="support", archived_at=timezone.now())
    Dataset.objects.filter(pk="support").update(archived_at=timezone.now())
    path = f"/agents/concierge/gates/{gate.pk}"

    page = text(client.get(path))
    client.post(path, FIELDS | {"minimum": "0.5"})

    assert '<option value="support" selected>' in page
    assert '<option value="past"' not in page
    gate.refresh_from_db()
    assert (gate.dataset_id, gate.minimum) == ("support", 0.5)


def test_a_gate_that_another_manager_changed_meanwhile_is_replaced_only_on_purpose(client, manager, gate):
    path = f"/agents/concierge/gates/{gate.pk}"
    opened = seen(text(client.get(path)))
    client.post(path, FIELDS | {"minimum": "0.9", "seen": opened})

    refused = text(client.post(path, FIELDS | {"minimum": "0.5", "seen": opened}), 422)

    assert "somebody else has changed this gate" in refused
    assert "0.90 on &#x27;Equals the ground truth&#x27;" in refused
    assert 'name="minimum" value="0.5"' in refused
    gate.refresh_from_db()
    assert gate.minimum == 0.9
    client.post(path, FIELDS | {"minimum": "0.5", "seen": seen(refused)})
    gate.refresh_from_db()
    assert gate.minimum == 0.5


def test_a_new_gate_is_added_whatever_mark_of_another_form_is_sent(client, manager):
    answer = client.post(ADD, FIELDS | {"seen": "0" * 64})

    assert answer.status_code == 302
    assert ReleaseGate.objects.get().minimum == 0.8


def seen(page):
    """Return what the form on a page was rendered with."""
    return page.partition('name="seen" value="')[2].partition('"')[0]


def test_the_page_of_a_gate_that_was_deleted_speaks_of_no_agent(client, manager):
    page = text(client.post(f"/agents/concierge/gates/{uuid.uuid4()}", FIELDS), 404)

    assert "It may have been deleted" in page
    assert "agent or version" not in page


def test_only_managers_change_gates_and_strangers_find_none(client, agent, gate):
    paths = [ADD, f"/agents/concierge/gates/{gate.pk}", f"/agents/concierge/gates/{gate.pk}/delete"]
    for role, owner, status in (("publisher", "support", 403), ("manager", "elsewhere", 404)):
        client.force_login(member(role, owner))
        assert [client.post(path, FIELDS).status_code for path in paths] == [status] * 3
        assert [client.get(path).status_code for path in paths] == [status] * 3
    assert client.post(f"{paths[1]}/run").status_code == 404


def test_a_button_runs_what_all_gates_over_the_dataset_wait_for(client, manager, agent, draft):
    agent.gates.create(dataset_id="support", scorer="answer-length", minimum=0.1)
    gate = agent.gates.get(scorer="exact")
    page = text(client.get("/agents/concierge/quality"))

    started = client.post(f"/agents/concierge/gates/{gate.pk}/run")

    assert "Version 2 needs 0.80 on &#x27;Equals the ground truth&#x27;" in page
    row = Experiment.objects.get()
    assert started.url == f"/experiments/{row.pk}"
    assert (row.version_number, row.scorer_keys) == (2, ["exact", "answer-length"])
    assert "Experiment running: 0 of 1" in text(client.get("/agents/concierge/quality"))


def test_a_second_click_shows_the_experiment_of_the_first(client, manager, agent, draft):
    gate = agent.gates.get()
    other = agent.gates.create(dataset_id="support", scorer="answer-length", minimum=0.1)
    path = "/agents/concierge/gates/{}/run"

    urls = {client.post(path.format(pk)).url for pk in (gate.pk, gate.pk, other.pk)}

    assert urls == {f"/experiments/{Experiment.objects.get().pk}"}


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_start_one_experiment(agent, draft):
    path = f"/agents/concierge/gates/{agent.gates.get().pk}/run"
    users = [member("manager", "support") for _ in range(3)]

    answers = run_concurrently([partial(browser(user).post, path) for user in users])

    assert {answer.url for answer in answers} == {f"/experiments/{Experiment.objects.get().pk}"}


def test_the_button_runs_a_newer_draft_beside_a_running_experiment(client, manager, agent, draft):
    path = f"/agents/concierge/gates/{agent.gates.get().pk}/run"
    client.post(path)
    with change(publish=False):
        agent.edit({"instructions": "Three"})

    client.post(path)

    assert {*Experiment.objects.values_list("version_number", flat=True)} == {2, 3}


def test_the_button_of_a_gate_that_is_deleted_meanwhile_starts_nothing(client, manager, agent, draft, monkeypatch):
    path = f"/agents/concierge/gates/{agent.gates.get().pk}/run"

    def delete_gate_first(*args):
        ReleaseGate.objects.all().delete()
        return get_page_dataset(*args)

    monkeypatch.setattr(gates, "get_page_dataset", delete_gate_first)

    assert client.post(path).status_code == 404
    assert not Experiment.objects.exists()


def test_the_button_starts_its_own_experiment_beside_one_with_submitted_results(client, manager, agent, draft):
    path = f"/agents/concierge/gates/{agent.gates.get().pk}/run"
    client.post(path)
    Experiment.objects.update(has_submitted_results=True)

    client.post(path)

    assert Experiment.objects.count() == 2


def test_the_button_says_why_the_draft_cannot_answer(client, manager, agent, draft):
    agent.edit({"model": {"provider": "anthropic", "name": "claude"}})

    answer = client.post(f"/agents/concierge/gates/{agent.gates.get().pk}/run", follow=True)

    assert "cannot answer: Anthropic has no API key." in text(answer)
    assert not Experiment.objects.exists()


def test_a_gate_on_the_difference_to_live_runs_live_first(client, manager, agent, draft):
    agent.gates.update(statistic="difference_to_live", minimum=0)
    experiment_of(draft)
    assert "no experiment has tested the live version" in text(client.get("/agents/concierge/quality"))

    client.post(f"/agents/concierge/gates/{agent.gates.get().pk}/run")

    assert Experiment.objects.first().version_number == 1


@pytest.mark.parametrize(("act", "more"), [("activate", {}), ("restore", {"publish": "yes"})])
def test_a_manager_publishes_anyway_with_a_reason(client, manager, agent, draft, act, more):
    path = f"/agents/concierge/versions/2/{act}"
    if act == "restore":
        agent.edit({"instructions": "Three"})
    agent.refresh_from_db()
    numbers = {"live": "1", "head": str(agent.last_version_number), "message": "", **more}
    page = text(client.get(path))

    short = client.post(path, numbers | {"bypass_reason": "          "})
    done = client.post(path, numbers | {"bypass_reason": "The old one is down."})

    assert "A release gate is not met." in page
    assert "Reason to publish without the gate" in page
    assert (short.status_code, done.status_code) == (422, 302)
    assert short.context["form"].errors == {"bypass_reason": [NO_REASON_MESSAGE]}
    assert "A release gate is not met." in short.content.decode()
    assert live_number(agent) == (2 if act == "activate" else 4)
    assert agent.activations.first().reason == "Gates bypassed: The old one is down."


def test_publishers_neither_see_nor_use_the_way_around(client, agent, draft):
    client.force_login(member("publisher", "support"))
    path = "/agents/concierge/versions/2/activate"

    page = text(client.get(path))
    answer = client.post(path, {"live": "1", "message": "", "bypass_reason": "The old one is down."})

    assert "A release gate is not met." in page
    assert "Publish anyway" not in page
    assert answer.status_code == 403
    assert live_number(agent) == 1


def test_a_gate_that_warns_says_so_before_publishing(client, manager, agent, draft):
    agent.gates.update(mode="warn")
    path = "/agents/concierge/versions/2/activate"

    page = text(client.get(path))
    client.post(path, {"live": "1", "message": ""})

    assert "A release gate warns." in page
    assert live_number(agent) == 2


def test_an_experiment_without_the_scorer_does_not_hide_an_earlier_one(agent, draft):
    experiment_of(draft)
    other = experiment_of(draft, completed_at=draft.created_at.replace(year=2090))
    Experiment.objects.filter(pk=other.pk).update(summary={"scorers": {"tone": {"mean": 0.1}}})

    draft.activate()

    assert live_number(agent) == 2


def test_publishing_without_a_gate_asks_for_one_reason(client, manager, draft):
    refused = text(client.get("/agents/concierge/versions/2/activate"))
    ReleaseGate.objects.all().delete()
    allowed = text(client.get("/agents/concierge/versions/2/activate"))

    assert 'name="bypass_reason"' in refused
    assert 'name="message"' not in refused
    assert 'name="message"' in allowed


def test_the_form_of_a_gate_can_be_left(client, manager):
    assert '<a class="button" href="/agents/concierge/quality">Cancel</a>' in text(client.get(ADD))


@pytest.mark.parametrize(("role", "is_disabled"), [("publisher", True), ("manager", False)])
def test_a_button_that_a_gate_would_refuse_cannot_be_pressed(client, agent, draft, role, is_disabled):
    client.force_login(member(role, "support"))
    sent = {**client.get("/agents/concierge").context["form"].initial, "instructions": "Three"}
    sent = {name: value for name, value in sent.items() if isinstance(value, str)}

    dialog = text(client.get("/agents/concierge/versions/2/activate"))
    restore = text(client.get("/agents/concierge/versions/2/restore"))
    review = text(client.post(reverse("versions:review", args=["concierge"]), sent))

    refusal = 'disabled title="A release gate is not met."'
    assert [refusal in page for page in (dialog, review)] == [is_disabled] * 2
    assert "v2 is already the draft" in restore


def test_the_review_of_a_merge_that_leads_back_to_live_names_no_gate(client, manager, agent, gate):
    description = agent.description
    with change(publish=False):
        agent.edit({"instructions": "Two", "description": "Other"})
    mine = editor_form(agent, publish="yes", instructions="One")
    with change(publish=False):
        agent.edit({"description": description})

    page = client.post(reverse("versions:review", args=[agent.pk]), {**mine, "merge": "yes"})

    assert page.context["gate_refusal"] == ""
