"""The codes of errors in the bodies of responses: those of the newest client's protocol."""

import pytest

from agents_app.models import Agent
from evals_app.api import experiments
from evals_app.experiments.jobs import EXPERIMENT_JOB
from evals_app.models import Experiment
from jobs_app.models import Job
from runs_app.events.streams import StreamSlot
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

EXPERIMENTS = "/api/datasets/support/experiments"


@pytest.fixture
def caller():
    AgentFactory(id="clerk")
    return Caller(api_key(member("publisher")))


def external(caller):
    """Create an experiment that a program outside drives. Return its path."""
    return f"{EXPERIMENTS}/{caller.post(EXPERIMENTS, {'start': False}).body['id']}"


def assert_error(answer, status, code):
    assert (answer.status_code, answer.body["code"]) == (status, code)
    assert answer.body["error"].strip()


@pytest.mark.parametrize("path", ["", "/items", "/experiments", "/versions", "/export"])
def test_an_unknown_dataset_is_not_found(caller, path):
    assert_error(caller.get(f"/api/datasets/nobody{path}"), 404, "DATASET_NOT_FOUND")


def test_an_experiment_without_items_is_refused(caller):
    make_dataset()

    assert_error(caller.post(EXPERIMENTS, {"targetType": "agent", "targetId": "clerk"}), 409, "EXPERIMENT_NO_ITEMS")


def test_an_unknown_target_is_not_found(caller):
    make_dataset("One")

    assert_error(
        caller.post(EXPERIMENTS, {"targetType": "agent", "targetId": "nobody"}), 404, "EXPERIMENT_TARGET_NOT_FOUND"
    )


def test_a_finalized_experiment_takes_no_result(caller):
    dataset = make_dataset("One")
    path, item = external(caller), str(dataset.items.get().pk)
    assert caller.post(f"{path}/results", {"itemId": item, "output": "Yes"}).status_code in (200, 201)
    assert caller.post(f"{path}/finalize").body["status"] == "completed"

    late = caller.post(f"{path}/results", {"itemId": item, "output": "No"})

    assert_error(late, 409, "EXPERIMENT_ALREADY_FINALIZED")
    assert "Create another one." in late.body["error"]
    assert [row["output"] for row in caller.get(f"{path}/results").body["results"]] == ["Yes"]
    assert caller.post(f"{path}/finalize").body["status"] == "completed"  # a repeated call changes nothing


def test_a_finalized_experiment_runs_no_item(caller):
    dataset = make_dataset("One")
    body = {"start": False, "targetType": "agent", "targetId": "clerk"}
    path = f"{EXPERIMENTS}/{caller.post(EXPERIMENTS, body).body['id']}"
    caller.post(f"{path}/finalize")

    late = caller.post(f"{path}/items/{dataset.items.get().pk}/run")

    assert_error(late, 409, "EXPERIMENT_ALREADY_FINALIZED")


def test_a_purged_item_takes_neither_results_nor_changes(caller):
    dataset = make_dataset("One", "Two")
    item = dataset.items.first().pk
    path = external(caller)
    assert caller.delete(f"/api/datasets/support/items/{item}/purge").status_code == 200

    assert_error(caller.post(f"{path}/results", {"itemId": str(item), "output": "Yes"}), 409, "DATASET_ITEM_PURGED")
    assert_error(caller.patch(f"/api/datasets/support/items/{item}", {"input": "Three"}), 409, "DATASET_ITEM_PURGED")


def test_a_repeated_start_answers_with_the_same_experiment(caller):
    make_dataset("One", pk="other")
    make_dataset("One")
    body = {"id": "0195d0a0-0000-7000-8000-000000000001", "targetType": "agent", "targetId": "clerk"}

    first, again = (caller.post(EXPERIMENTS, body) for _ in range(2))

    assert (first.status_code, again.status_code, first.body["id"], again.body["id"]) == (201, 201, *[body["id"]] * 2)
    assert (Experiment.objects.count(), Job.objects.filter(kind=EXPERIMENT_JOB).count()) == (1, 1)
    for path, other in ((EXPERIMENTS, {"start": False}), ("/api/datasets/other/experiments", {})):
        assert_error(caller.post(path, {**body, **other}), 409, "already_exists")


def test_what_was_deleted_at_the_same_moment_is_not_found(caller, monkeypatch):
    make_dataset("One")
    path = external(caller)
    lookup = experiments.get_experiment

    def delete_then(*arguments, **options):
        row = lookup(*arguments, **options)
        Experiment.objects.all().delete()
        return row

    monkeypatch.setattr(experiments, "get_experiment", delete_then)

    assert_error(caller.post(f"{path}/finalize"), 404, "EXPERIMENT_NOT_FOUND")
    key = external(caller).rpartition("/")[2]
    assert_error(caller.post(f"/api/experiments/{key}/cancel"), 404, "EXPERIMENT_NOT_FOUND")


def test_a_score_is_refused_if_its_sums_would_not_fit_a_number(caller):
    dataset = make_dataset("One")
    path, item = external(caller), str(dataset.items.get().pk)
    run = RunFactory(agent=Agent.objects.get())

    def scored(score):
        scores = [{"scorerId": "x", "score": score}]
        return caller.post(f"{path}/results", {"itemId": item, "output": "Yes", "scores": scores})

    def assert_refused(answer, field):
        assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, field)

    for score in (1.7e308, -1.7e308, 1_000_001):
        assert_refused(scored(score), "scores[0].score")
        assert_refused(caller.post("/api/scores", {"runId": str(run.pk), "scorerId": "x", "score": score}), "score")
        trace = {"traceId": str(run.pk), "scorerId": "x", "score": score}
        assert_refused(caller.post("/api/observability/scores", {"score": trace}), "score.score")
    judge = {"name": "Judge", "type": "check", "presetConfig": {"check": "equals"}, "scoreRange": {"max": 1e300}}
    assert_refused(caller.post("/api/stored/scorers", judge), "scoreRange.max")
    assert scored(1_000_000).status_code == 201
    assert caller.post(f"{path}/finalize").body["summary"]["scorers"]["x"]["mean"] == 1_000_000


def test_items_that_run_have_the_limits_of_streams(settings):
    settings.RUN_STREAMS_PER_USER = 1
    user = member("publisher")
    AgentFactory(id="clerk")
    caller, dataset = Caller(api_key(user)), make_dataset("One")
    body = {"start": False, "targetType": "agent", "targetId": "clerk"}
    path = f"{EXPERIMENTS}/{caller.post(EXPERIMENTS, body).body['id']}"

    with StreamSlot(user):
        answer = caller.post(f"{path}/items/{dataset.items.get().pk}/run")

    assert (answer.status_code, answer.body["code"]) == (429, "too_many_streams")
    assert caller.get(f"{path}/results").body["results"] == []


def test_a_user_with_too_many_experiments_starts_no_more(settings):
    settings.EXPERIMENTS_PER_USER = 2
    AgentFactory(id="clerk")
    make_dataset("One")
    caller, other = (Caller(api_key(member("publisher"))) for _ in range(2))
    body = {"targetType": "agent", "targetId": "clerk"}

    started = [caller.post(EXPERIMENTS, body).status_code for _ in range(2)]
    refused = caller.post(EXPERIMENTS, body)

    assert started == [201, 201]
    assert_error(refused, 429, "too_many_experiments")
    assert int(refused.headers["Retry-After"]) > 0
    assert Experiment.objects.count() == Job.objects.filter(kind=EXPERIMENT_JOB).count() == 2
    assert caller.post(EXPERIMENTS, {"start": False}).status_code == 201  # a program outside drives it
    assert other.post(EXPERIMENTS, body).status_code == 201
    Experiment.objects.update(status="completed")
    assert caller.post(EXPERIMENTS, body).status_code == 201
