"""POST requests of evaluations with an `Idempotency-Key`."""

import pytest

from access_app.models import Membership
from agents_app.models import IdempotencyRecord
from evals_app.models import Dataset, ReleaseGate, Scorer
from runs_app.models import Score
from tests.api_client import Caller
from tests.evals_app.api.test_scorers import POLITE
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

DATASETS = "/api/datasets"
SCORER = "/api/stored/scorers/polite"


@pytest.fixture
def user():
    return member("publisher", "support")


@pytest.fixture
def publisher(user):
    return Caller(api_key(user))


def repeat(caller, requests):
    """Send each request twice, each with a key of its own. Return the pairs of answers."""
    answers = []
    for number, (path, body) in enumerate(requests):
        pair = [caller.post(path, body, Idempotency_Key=f"k{number}") for _ in range(2)]
        answers.append([(answer.status_code, answer.body) for answer in pair])
    return answers


def test_a_repeated_version_of_a_scorer_is_stored_once(publisher):
    publisher.post("/api/stored/scorers", POLITE)
    first = publisher.get(f"{SCORER}/versions").body["versions"][0]["id"]

    answers = repeat(
        publisher,
        [
            (f"{SCORER}/versions", {}),
            (f"{SCORER}/versions/{first}/restore", {}),
            (f"{SCORER}/versions/{first}/activate", {}),
        ],
    )

    assert [pair[0][0] for pair in answers] == [201, 201, 200]
    assert all(first == again for first, again in answers), answers
    assert Scorer.objects.get().versions.count() == 3


def test_a_repeated_gate_is_stored_once():
    manager = Caller(api_key(member("manager", "support")))
    agent = AgentFactory(id="clerk", owner_id="support")
    make_dataset("One", owner_id="support")
    gate = {"datasetId": "support", "scorer": "exact", "min": 0.8}

    [(first, again)] = repeat(manager, [(f"/api/stored/agents/{agent.pk}/gates", gate)])

    assert (first[0], again) == (201, first)
    assert ReleaseGate.objects.count() == 1


def test_a_repeated_gate_needs_the_role_of_a_manager():
    user = member("manager", "support")
    manager = Caller(api_key(user))
    agent = AgentFactory(id="clerk", owner_id="support")
    make_dataset("One", owner_id="support")
    request = (f"/api/stored/agents/{agent.pk}/gates", {"datasetId": "support", "scorer": "exact", "min": 0.8})
    manager.post(*request, Idempotency_Key="k")

    Membership.objects.filter(user=user).update(role="editor")

    assert manager.post(*request, Idempotency_Key="k").status_code == 403


def test_a_repeated_score_is_stored_once(publisher):
    run = RunFactory(agent=AgentFactory(id="clerk", owner_id="support"))
    given = {"scorerId": "polite", "score": 0.5}

    answers = repeat(
        publisher,
        [
            ("/api/scores", given | {"runId": str(run.pk)}),
            ("/api/observability/scores", {"score": given | {"traceId": str(run.pk)}}),
        ],
    )

    assert [pair[0][0] for pair in answers] == [201, 201]
    assert all(first == again for first, again in answers), answers
    assert Score.objects.count() == 2


def test_a_repeated_result_is_no_error_after_the_end_and_does_not_replace_a_later_one(publisher, user):
    dataset = make_dataset("One", owner_id="support")
    experiment = new_experiment(dataset, user, start=False)
    at = f"{DATASETS}/{dataset.pk}/experiments/{experiment.pk}"
    result = {"itemId": str(dataset.items.get().pk), "output": "turquoise"}

    def submit():
        answer = publisher.post(f"{at}/results", result, Idempotency_Key="k")
        return answer.status_code, answer.body.get("id"), answer.body.get("output")

    code, key, _ = submit()
    publisher.post(f"{at}/results", result | {"output": "Later"})
    publisher.post(f"{at}/finalize")

    assert (code, submit()) == (201, (201, key, "Later"))
    assert publisher.post(f"{at}/results", result).status_code == 409
    # Or what is purged would stay in the record.
    assert "turquoise" not in IdempotencyRecord.objects.get().content
    Membership.objects.filter(user=user).update(role="viewer")
    assert submit()[0] == 403


def test_a_repeated_score_needs_the_role_of_the_first(publisher, user):
    run = RunFactory(agent=AgentFactory(id="clerk", owner_id="support"), requested_by=user)
    body = {"scorerId": "polite", "score": 0.5, "runId": str(run.pk)}
    publisher.post("/api/scores", body, Idempotency_Key="k")

    Membership.objects.filter(user=user).update(role="viewer")

    assert publisher.post("/api/scores", body, Idempotency_Key="k").status_code == 403


def test_a_record_has_no_copy_of_what_may_be_purged(publisher):
    run = RunFactory(agent=AgentFactory(id="clerk", owner_id="support"), prompt="turquoise")
    dataset = publisher.post(DATASETS, {"name": "Questions"}).body["id"]
    requests = [
        (f"{DATASETS}/{dataset}/items", {"input": "turquoise"}),
        (f"{DATASETS}/{dataset}/items/batch", {"items": [{"input": "turquoise"}, {"input": "Hello"}], "itms": 1}),
        (f"/api/runs/{run.pk}/add-to-dataset", {"datasetId": dataset}),
        ("/api/scores", {"scorerId": "polite", "score": 0.5, "reason": "turquoise", "runId": str(run.pk)}),
    ]
    answers = repeat(publisher, requests)

    assert [pair[0][0] for pair in answers] == [201] * 4
    assert all(first == again for first, again in answers), answers
    assert [row.content for row in IdempotencyRecord.objects.all() if "turquoise" in row.content] == []

    item = answers[0][0][1]["id"]
    publisher.delete(f"{DATASETS}/{dataset}/items/{item}/purge")
    assert "turquoise" not in str(repeat(publisher, requests[:1]))


def test_a_response_that_the_previous_release_stored_as_a_whole_is_not_repeated(publisher):
    dataset = publisher.post(DATASETS, {"name": "Questions"}).body["id"]
    request = (f"{DATASETS}/{dataset}/items", {"input": "Hello"})
    publisher.post(*request, Idempotency_Key="k")
    IdempotencyRecord.objects.update(role="editor")

    again = publisher.post(*request, Idempotency_Key="k")

    assert (again.status_code, again.body["code"]) == (409, "not_repeatable")


def test_what_moved_to_another_team_is_not_repeated(publisher):
    run = RunFactory(agent=AgentFactory(id="clerk", owner_id="support"))
    dataset = publisher.post(DATASETS, {"name": "Questions"}).body["id"]
    requests = [
        (f"{DATASETS}/{dataset}/items", {"input": "Hello"}),
        (f"{DATASETS}/{dataset}/items/batch", {"items": [{"input": "Hello"}]}),
        (f"{DATASETS}/{dataset}/experiments", {"targetType": "agent", "targetId": "clerk"}),
        (f"/api/runs/{run.pk}/add-to-dataset", {"datasetId": dataset}),
    ]
    assert [first[0] for first, _ in repeat(publisher, requests)] == [201] * 4

    Dataset.objects.update(owner_id="sales")

    assert [first[0] for first, _ in repeat(publisher, requests)] == [404] * 4
