"""Bars of release gates: statistics, both bounds, failed items and the age of the experiment."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents_app.editing.change_context import change
from agents_app.editing.version_refusals import GateNotMet
from evals_app.models import Experiment, ReleaseGate
from tests.api_client import Caller, agent_path
from tests.evals_app.experiment_runs import make_dataset
from tests.evals_app.gates.test_gates import live_number
from tests.factories import AgentFactory, api_key, member

pytestmark = pytest.mark.django_db

FIGURES = {"mean": 0.6, "min": 0.2, "passRate": 0.75}
JUST_BELOW = sum([0.7, 0.8, 0.9]) / 3
assert JUST_BELOW < 0.8


@pytest.fixture
def agent():
    row = AgentFactory(id="concierge", instructions="One")
    make_dataset("One")
    ReleaseGate.objects.create(agent=row, dataset_id="support", scorer="exact", minimum=0)
    return row


@pytest.fixture
def draft(agent):
    with change(publish=False):
        return agent.edit({"instructions": "Two"})


def experiment_of(version, days_ago=0.0, failed=0):
    """Store an experiment of a version over ten items."""
    return Experiment.objects.create(
        dataset_id="support",
        dataset_version=1,
        target_type="agent",
        target_id=version.agent_id,
        snapshot_hash=version.snapshot_hash,
        status="completed",
        total_items=10,
        succeeded_count=10 - failed,
        failed_count=failed,
        summary={"scorers": {"exact": FIGURES}},
        completed_at=timezone.now() - timedelta(days=days_ago),
    )


def refusal(draft):
    """Publish the draft, and return the message of the gate that refused it, or a blank text."""
    try:
        draft.activate()
    except GateNotMet as error:
        return str(error.messages[0])
    return ""


@pytest.mark.parametrize(
    ("statistic", "met", "missed", "message"),
    [
        ("mean", 0.6, 0.61, "0.61 on 'Equals the ground truth' over 'Support'; its last experiment scored 0.60."),
        ("min", 0.2, 0.21, "(lowest score) over 'Support'; its last experiment scored 0.20."),
        ("pass_rate", 0.75, 0.76, "(pass rate) over 'Support'; its last experiment scored 0.75."),
    ],
)
def test_each_statistic_reads_its_own_figure(agent, draft, statistic, met, missed, message):
    experiment_of(draft)
    agent.gates.update(statistic=statistic, minimum=missed)

    assert message in refusal(draft)
    assert live_number(agent) == 1
    agent.gates.update(minimum=met)
    assert (refusal(draft), live_number(agent)) == ("", 2)


@pytest.mark.parametrize(("live", "tested", "needed"), [(0.8, 0.9, 0.1), (0.3, 0.4, 0.1), (0.7, 0.6, -0.1)])
def test_a_difference_that_is_just_enough_is_enough(agent, draft, live, tested, needed):
    """Although 0.9 - 0.8 is less than 0.1 in binary."""
    for version, mean in ((agent.active_version, live), (draft, tested)):
        row = experiment_of(version)
        Experiment.objects.filter(pk=row.pk).update(summary={"scorers": {"exact": {**FIGURES, "mean": mean}}})
    agent.gates.update(statistic="difference_to_live", minimum=needed)

    assert (refusal(draft), live_number(agent)) == ("", 2)


def test_a_mean_that_is_just_enough_is_enough(agent, draft):
    """Although that of 0.7, 0.8 and 0.9 is less than 0.8 in binary."""
    experiment_of(draft)
    Experiment.objects.update(summary={"scorers": {"exact": {**FIGURES, "mean": JUST_BELOW}}})
    agent.gates.update(minimum=0.8)

    assert (refusal(draft), live_number(agent)) == ("", 2)


@pytest.mark.parametrize(
    ("mean", "minimum", "need", "scored"),
    [(0.7996, 0.8, "0.80", "0.7996"), (0.8, 0.805, "0.805", "0.80")],
)
def test_a_refusal_has_as_many_digits_as_tell_the_score_from_the_bar(agent, draft, mean, minimum, need, scored):
    experiment_of(draft)
    Experiment.objects.update(summary={"scorers": {"exact": {**FIGURES, "mean": mean}}})
    agent.gates.update(minimum=minimum)

    message = refusal(draft)

    assert f"needs {need} on" in message
    assert message.endswith(f"scored {scored}.")


def test_a_score_above_the_maximum_is_refused(agent, draft):
    experiment_of(draft)
    agent.gates.update(minimum=None, maximum=0.59)

    assert refusal(draft) == (
        "Version 2 needs at most 0.59 on 'Equals the ground truth' over 'Support'; its last experiment scored 0.60."
    )
    agent.gates.update(maximum=0.6)
    assert (refusal(draft), live_number(agent)) == ("", 2)


@pytest.mark.parametrize(("minimum", "maximum", "is_met"), [(0.5, 0.7, True), (0.7, 0.9, False), (0.1, 0.5, False)])
def test_both_bounds_hold_at_once(agent, draft, minimum, maximum, is_met):
    experiment_of(draft)
    agent.gates.update(minimum=minimum, maximum=maximum)

    message = refusal(draft)

    assert (not message, live_number(agent) == 2) == (is_met, is_met)
    assert is_met or f"{minimum:.2f} and at most {maximum:.2f} on" in message


def test_more_failed_items_than_allowed_are_refused(agent, draft):
    agent.gates.update(max_failed=2)
    experiment_of(draft, days_ago=1, failed=3)

    assert "3 items of its last experiment failed." in refusal(draft)
    agent.gates.update(max_failed=0)
    experiment_of(draft, failed=1)
    assert "1 item of its last experiment failed." in refusal(draft)
    agent.gates.update(max_failed=1)
    assert (refusal(draft), live_number(agent)) == ("", 2)


@pytest.mark.parametrize("columns", [{"scorer_keys": ["exact"]}, {"dataset_scorer_keys": ["exact"]}])
def test_an_experiment_of_which_all_items_failed_is_the_last_one_of_its_scorers_alone(agent, draft, columns):
    experiment_of(draft, days_ago=1)
    failed = experiment_of(draft, failed=10)
    Experiment.objects.filter(pk=failed.pk).update(summary={"scorers": {}}, **columns)

    assert "10 items of its last experiment failed." in refusal(draft)
    Experiment.objects.filter(pk=failed.pk).update(scorer_keys=["cites-source"])
    assert (refusal(draft), live_number(agent)) == ("", 2)


def test_a_live_version_whose_items_failed_is_no_comparison(agent, draft):
    agent.gates.update(statistic="difference_to_live")
    experiment_of(draft)
    experiment_of(agent.active_version, days_ago=1, failed=9)

    assert "of the live version, 9 items of its last experiment failed." in refusal(draft)
    experiment_of(agent.active_version)
    assert (refusal(draft), live_number(agent)) == ("", 2)


def test_errors_of_the_scorer_count_like_failed_items(agent, draft):
    experiment = experiment_of(draft)
    experiment.summary = {"scorers": {"exact": {**FIGURES, "errors": 9, "notScorable": 1}}}
    experiment.save()

    assert "its scorer failed for 9 answers of its last experiment." in refusal(draft)
    agent.gates.update(max_failed=9)
    assert (refusal(draft), live_number(agent)) == ("", 2)


def test_an_experiment_that_is_too_old_is_refused(agent, draft):
    agent.gates.update(max_age_days=7)
    experiment_of(draft, days_ago=7.1)

    assert "its last experiment is older than 7 days." in refusal(draft)
    experiment_of(draft, days_ago=6.9)
    assert (refusal(draft), live_number(agent)) == ("", 2)


def test_the_bounds_are_set_and_reported_over_http(agent, draft):
    manager = Caller(api_key(member("manager")))
    path = agent_path("concierge", "gates")
    one = f"{path}/{agent.gates.get().pk}"
    publish = agent_path("concierge", "versions", str(draft.pk), "activate")
    experiment_of(draft, days_ago=8, failed=2)

    changed = manager.patch(one, {"statistic": "min", "min": None, "max": 0.1, "maxFailed": 1, "maxAgeDays": 7})
    refusals = [manager.post(publish, {}).body["error"]]
    for step in ({"maxAgeDays": None}, {"maxFailed": 2}, {"max": 0.2}):
        manager.patch(one, step)
        answer = manager.post(publish, {})
        refusals.append(answer.body.get("error", ""))

    assert [changed.body[name] for name in ("statistic", "min", "max", "maxFailed", "maxAgeDays")] == [
        "min",
        None,
        0.1,
        1,
        7,
    ]
    for message, part in zip(
        refusals, ["older than 7 days", "2 items of its last experiment failed", "scored 0.20", ""], strict=True
    ):
        assert part in message
    assert (answer.status_code, live_number(agent)) == (200, 2)
    assert manager.patch(one, {"maxAgeDays": 0}).body["issues"][0]["field"] == "maxAgeDays"
    assert manager.patch(one, {"min": 0.3}).body["issues"][0]["field"] == "max"


def test_a_live_version_whose_experiment_is_too_old_is_no_comparison(agent, draft):
    agent.gates.update(statistic="difference_to_live", minimum=0, max_age_days=7)
    experiment_of(draft)
    experiment_of(agent.active_version, days_ago=7.1)

    assert "the last experiment of the live version is older than 7 days." in refusal(draft)
    experiment_of(agent.active_version, days_ago=6.9)
    assert (refusal(draft), live_number(agent)) == ("", 2)


def test_a_scorer_that_has_seen_some_answers_only_is_refused(agent, draft):
    experiment = experiment_of(draft)
    for count, unscored in ((1, 2), (8, 2)):
        experiment.summary = {"scorers": {"exact": {**FIGURES, "count": count, "unscored": unscored}}}
        experiment.save()
        if count == 1:
            assert "; its scorer has seen 3 of 10 answers of its last experiment." in refusal(draft)

    assert (refusal(draft), live_number(agent)) == ("", 2)


def test_a_gate_names_no_version_that_its_dataset_does_not_have_yet(agent):
    manager, path = Caller(api_key(member("manager"))), agent_path("concierge", "gates")
    body = {"datasetId": "support", "scorer": "exact", "min": 0.5}

    refused = manager.post(path, {**body, "datasetVersion": 2})

    message = "The newest version of the dataset is 1. Name that or an earlier one."
    assert refused.body["issues"] == [{"field": "datasetVersion", "message": message}]
    assert manager.post(path, {**body, "datasetVersion": 1}).status_code == 201


def test_a_gate_that_was_stored_with_a_later_version_can_be_changed(agent):
    agent.gates.update(dataset_version=5)
    manager, path = Caller(api_key(member("manager"))), agent_path("concierge", "gates", str(agent.gates.get().pk))

    changed = manager.patch(path, {"mode": "warn"})
    refused = manager.patch(path, {"datasetVersion": 6})

    assert (changed.status_code, changed.body["datasetVersion"]) == (200, 5)
    assert refused.status_code == 400
