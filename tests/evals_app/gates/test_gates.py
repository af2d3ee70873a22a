"""Release gates: each way to go live, drafts, the way back, bypassing, and who may keep gates."""

import pytest
from django.test import Client

from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import GateNotMet
from evals_app.models import Experiment, ReleaseGate
from tests.agents_app.admin.test_publishing_drafts import LIST, confirm, messages
from tests.api_client import Caller, agent_path
from tests.concurrently import run_concurrently
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, MembershipFactory, UserFactory, api_key, member

pytestmark = pytest.mark.django_db

REASON = "Version 2 needs 0.80 on 'Equals the ground truth' over 'Support'; no experiment has tested it."


@pytest.fixture
def agent():
    return AgentFactory(id="concierge", instructions="One")


@pytest.fixture
def gate(agent):
    dataset = make_dataset("One")
    return ReleaseGate.objects.create(agent=agent, dataset=dataset, scorer="exact", minimum=0.8)


@pytest.fixture
def draft(agent, gate):
    """Return the draft that the gate refuses."""
    with change(publish=False):
        return agent.edit({"instructions": "Two"})


def experiment_of(version, mean=0.9, **columns):
    """Store an experiment of a version."""
    columns = {"total_items": 1, "succeeded_count": 1, "status": "completed", **columns}
    return Experiment.objects.create(
        dataset_id="support",
        dataset_version=columns.pop("dataset_version", 1),
        target_type="agent",
        target_id=version.agent_id,
        snapshot_hash=version.snapshot_hash,
        summary={"scorers": {"exact": {"mean": mean, "min": mean, "passRate": mean}}},
        completed_at=columns.pop("completed_at", version.created_at),
        **columns,
    )


def live_number(agent):
    agent.refresh_from_db()
    return agent.active_version.version_number


def caller(role="publisher"):
    return Caller(api_key(member(role)))


def test_a_version_that_meets_the_gate_goes_live(agent, draft):
    experiment_of(draft)

    draft.activate()

    assert live_number(agent) == 2


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"mean": 0.74}, "its last experiment scored 0.74."),
        ({"dataset_version": 0}, "no experiment has tested it over version 1 of the dataset."),
        ({"status": "cancelled"}, "no experiment has tested it."),
        ({"total_items": 2}, "no experiment has tested it."),
        ({"succeeded_count": 0, "failed_count": 1}, "1 item of its last experiment failed."),
        ({"has_submitted_results": True}, "no experiment has tested it."),
    ],
)
def test_what_does_not_meet_the_gate_is_refused(agent, draft, columns, reason):
    experiment_of(draft, **columns)

    with pytest.raises(GateNotMet, match=reason):
        draft.activate()

    assert live_number(agent) == 1


def test_an_ordinary_save_stays_a_draft_and_says_so(agent, gate):
    answer = caller().patch(agent_path(), {"instructions": "Two"})

    assert (answer.status_code, answer.body["hasDraft"], live_number(agent)) == (200, True, 1)
    assert answer.body["warnings"][-1] == {
        "field": "autoPublish",
        "key": "autoPublish",
        "message": f"Saved as a draft. {REASON}",
    }


def test_an_ordinary_save_beside_a_draft_changes_the_draft(agent, draft):
    answer = caller().patch(agent_path(), {"description": "New"})

    agent.refresh_from_db()
    assert (answer.status_code, live_number(agent)) == (200, 1)
    assert (agent.instructions, agent.description) == ("Two", "New")
    assert answer.body["warnings"][-1]["message"] == f"Saved as a draft. {REASON.replace('2', '3', 1)}"


def test_every_explicit_way_over_http_is_refused(agent, draft):
    publisher = caller()
    ways = {
        "activate": publisher.post(agent_path("concierge", "versions", str(draft.pk), "activate"), {}),
        "patch": publisher.patch(agent_path(), {"instructions": "Three", "autoPublish": True}),
        "restore": publisher.post(
            agent_path("concierge", "versions", str(draft.pk), "restore"), {"autoPublish": True}
        ),
    }

    assert {name: (answer.status_code, answer.body["code"]) for name, answer in ways.items()} == dict.fromkeys(
        ways, (409, "gate_not_met")
    )
    assert ways["activate"].body["error"] == REASON
    assert live_number(agent) == 1


def test_a_restore_without_a_word_stays_a_draft(agent, draft):
    answer = caller().post(agent_path("concierge", "versions", str(draft.pk), "restore"), {})

    assert answer.status_code == 200
    assert "Saved as a draft." in answer.body["warnings"][-1]["message"]
    assert live_number(agent) == 1


@pytest.fixture
def browser():
    client = Client()
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    return client


@pytest.mark.parametrize(("act", "more"), [("activate", {}), ("restore", {"publish": "yes"})])
def test_the_dialogs_show_what_is_missing(agent, draft, act, more):
    publisher = Client()
    publisher.force_login(member("publisher"))

    page = publisher.post(f"/agents/concierge/versions/2/{act}", {"live": "1", "head": "2", "message": "", **more})

    assert page.status_code == 409
    assert "no experiment has tested it." in page.content.decode()
    assert live_number(agent) == 1


def test_the_admin_refuses_too(agent, draft, browser):
    question = browser.post(LIST, {"action": "publish_drafts", "_selected_action": ["concierge"]})

    answer = confirm(browser, question)

    assert "no experiment has tested it." in " ".join(messages(answer))
    assert live_number(agent) == 1


def test_code_and_imports_are_refused(agent, draft):
    with change(publish=True), pytest.raises(GateNotMet):
        agent.edit({"instructions": "Three"})
    agent.edit({"instructions": "Four"})

    assert live_number(agent) == 1


def test_what_was_live_before_is_never_refused(agent, draft):
    experiment_of(draft)
    draft.activate()
    Experiment.objects.all().delete()

    agent.activations.first().undo()
    assert live_number(agent) == 1
    agent.versions.get(version_number=2).activate()
    assert live_number(agent) == 2
    agent.versions.get(version_number=1).restore()
    assert live_number(agent) == 3


def test_a_new_agent_is_not_gated(gate):
    ReleaseGate.objects.update(agent=None)

    assert AgentFactory(id="new").active_version.version_number == 1


def test_a_gate_of_a_team_holds_for_its_agents(agent, draft):
    ReleaseGate.objects.update(agent=None, owner_id="")

    with pytest.raises(GateNotMet):
        draft.activate()


def test_a_gate_that_only_warns_lets_pass(agent, draft):
    ReleaseGate.objects.update(mode="warn")

    draft.activate()

    assert live_number(agent) == 2


def test_a_manager_goes_around_with_a_reason(agent, draft):
    path = agent_path("concierge", "versions", str(draft.pk), "activate")
    body = {"bypassReason": "The old one is down."}

    short = caller("manager").post(path, {"bypassReason": "now"})
    refused = caller("publisher").post(path, body)
    done = caller("manager").post(path, body)

    assert (short.status_code, refused.status_code, done.status_code) == (400, 403, 200)
    assert live_number(agent) == 2
    assert agent.activations.first().reason == "Gates bypassed: The old one is down."


def test_a_gate_may_ask_for_a_difference_to_live(agent, draft):
    ReleaseGate.objects.update(statistic="difference_to_live", minimum=-0.02)
    experiment_of(agent.active_version, mean=0.9)
    experiment_of(draft, mean=0.85)

    with pytest.raises(GateNotMet):
        draft.activate()
    experiment_of(draft, mean=0.89, completed_at=draft.created_at.replace(year=2090))
    draft.activate()

    assert live_number(agent) == 2


def test_managers_add_change_and_delete_gates_over_http(agent):
    make_dataset("One")
    manager, viewer = caller("manager"), caller("viewer")
    path = agent_path("concierge", "gates")

    created = manager.post(path, {"datasetId": "support", "scorer": "exact", "min": 0.8})
    one = f"{path}/{created.body['id']}"
    listed = viewer.get(path).body["gates"]

    assert (created.status_code, created.body["mode"], created.body["statistic"]) == (201, "enforce", "mean")
    assert (listed[0]["met"], listed[0]["message"]) == (
        False,
        "Version 1 needs 0.80 on 'Equals the ground truth' over 'Support'; no experiment has tested it.",
    )
    assert manager.post(path, {"datasetId": "support", "scorer": "exact"}).body["issues"][0]["field"] == "min"
    assert (
        manager.post(path, {"datasetId": "none", "scorer": "exact", "min": 1}).body["issues"][0]["field"]
        == "datasetId"
    )
    # No experiment could score with it, so that the gate could never be met.
    assert manager.post(path, {"datasetId": "support", "scorer": "exakt", "min": 1}).body["issues"] == [
        {"field": "scorer", "message": "Scorer with id exakt not found."}
    ]
    all_wrong = manager.post(path, {"datasetId": "none", "scorer": "exakt", "maxAgeDays": 0, "mode": "x"})
    assert sorted(issue["field"] for issue in all_wrong.body["issues"]) == [
        "datasetId",
        "maxAgeDays",
        "min",
        "mode",
        "scorer",
    ]
    assert [caller("publisher").patch(one, {"min": 0.1}).status_code, viewer.delete(one).status_code] == [403, 403]
    assert manager.patch(one, {"min": 0.5}).body["min"] == 0.5
    stranger = Caller(api_key(member("manager", "elsewhere")))
    AgentFactory(id="own", owner_id="support")
    assert stranger.get(agent_path("own", "gates")).status_code == 404
    assert manager.delete(one).status_code == 200


def test_a_dataset_of_another_team_is_refused_like_an_unknown_one():
    user = member("manager", "support")
    MembershipFactory(user=user, owner_id="sales", role="viewer")
    AgentFactory(id="clerk", owner_id="support")
    make_dataset("One", pk="leads", owner_id="sales")
    body = {"datasetId": "leads", "scorer": "exact", "min": 0.5}

    refused = Caller(api_key(user)).post(agent_path("clerk", "gates"), body)

    assert refused.status_code == 400
    assert refused.body["issues"] == [{"field": "datasetId", "message": "Dataset with id leads not found."}]
    assert not ReleaseGate.objects.exists()


def test_a_dataset_of_a_gate_is_not_deleted(gate):
    answer = caller().delete("/api/datasets/support")

    assert (answer.status_code, answer.body["code"]) == (409, "dataset_in_use")


def test_a_scorer_of_a_gate_is_not_deleted(gate):
    publisher = caller()
    path = "/api/stored/scorers/polite"
    publisher.post(
        "/api/stored/scorers", {"name": "Polite", "type": "check", "presetConfig": {"check": "includes", "value": "a"}}
    )
    ReleaseGate.objects.update(scorer="polite")
    AgentFactory(id="clerk", scorers={"polite": {}})

    refused = publisher.delete(path)
    ReleaseGate.objects.all().delete()
    deleted = publisher.delete(path)

    assert (refused.status_code, refused.body["code"]) == (409, "scorer_in_use")
    assert deleted.body["message"] == "Scorer polite deleted. These agents run without it from now on: 'clerk'"


def test_a_gate_of_an_agent_that_moved_uses_the_scorers_of_its_team(gate):
    boss, check = (
        Caller(api_key(UserFactory(is_superuser=True))),
        {"type": "check", "presetConfig": {"check": "includes", "value": "a"}},
    )
    for owner in ("sales", "support"):
        boss.post("/api/stored/scorers", {"name": "Polite", "id": f"of-{owner}", "ownerId": owner, **check})
    ReleaseGate.objects.update(owner_id="sales")
    boss.patch(agent_path("concierge"), {"ownerId": "support"})
    path = agent_path("concierge", "gates", str(gate.pk))

    refused = boss.patch(path, {"scorer": "of-sales"})
    changed = boss.patch(path, {"scorer": "of-support"})
    ReleaseGate.objects.update(owner_id="sales")
    deletions = [boss.delete(f"/api/stored/scorers/of-{owner}").status_code for owner in ("sales", "support")]

    assert (refused.status_code, changed.status_code, changed.body["ownerId"]) == (400, 200, "support")
    assert deletions == [200, 409]


@pytest.mark.django_db(transaction=True)
def test_parallel_activations_are_all_refused(agent, draft):
    answers = run_concurrently([draft.activate] * 4)

    assert all(isinstance(answer, GateNotMet) for answer in answers)
    assert live_number(agent) == 1
