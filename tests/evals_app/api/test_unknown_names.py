"""Names in bodies of datasets, items and experiments that nothing reads: warnings, or errors of strict requests."""

import pytest

from agents_app.models import Agent
from evals_app.models import Dataset, Experiment, ItemVersion
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

MOCK = {"toolName": "refund", "args": {}, "output": "Done"}
SETTING = ["presetConfig.caseSensitiv"]
EXPERIMENT = {"targetId": "concierge", "maxConcurency": 2}


@pytest.fixture
def caller():
    make_dataset("One", owner_id="support")
    AgentFactory(id="concierge", owner_id="support")
    return Caller(api_key(member("editor", "support")))


@pytest.fixture
def external(caller):
    """Return an experiment that a program outside drives."""
    body = {"start": False, "targetId": "concierge"}
    return caller.post("/api/datasets/support/experiments", body).body["experimentId"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("", {"name": "New", "ownerId": "support", "id": "new"}, "id"),
        ("/support/items", {"input": "Two", "groundtruth": "2"}, "groundtruth"),
        ("/support/items/batch", {"items": [{"input": "Two"}, {"input": "3", "truth": "3"}]}, "items[1].truth"),
        ("/support/items", {"input": "2", "source": {"type": "csv", "reference": "x"}}, "source.reference"),
        ("/support/items", {"input": "2", "toolMocks": [MOCK, {**MOCK, "match": "ignore"}]}, "toolMocks[1].match"),
        ("/support/items", {"input": "2", "expectedTrajectory": {"maxTokens": 5}}, "expectedTrajectory.maxTokens"),
        (
            "/support/items/batch",
            {
                "items": [
                    {"input": "2", "expectedTrajectory": {"steps": ["a", {"name": "b", "children": [{"arg": 1}]}]}}
                ]
            },
            "items[0].expectedTrajectory.steps[1].children[0].arg",
        ),
        ("/support/experiments", EXPERIMENT, "maxConcurency"),
        ("/support/experiments", {"targetId": "concierge", "budget": {"maxCosts": 1}}, "budget.maxCosts"),
    ],
)
def test_a_name_that_nothing_reads_is_reported(caller, path, body, field):
    strict = caller.post(f"/api/datasets{path}?strict=true", body)
    counts = [model.objects.count() for model in (Dataset, ItemVersion, Experiment)]
    answer = caller.post(f"/api/datasets{path}", body)

    assert (strict.status_code, [issue["field"] for issue in strict.body["issues"]]) == (400, [field])
    assert counts == [1, 1, 0]
    assert (answer.status_code, [warning["field"] for warning in answer.body["warnings"]]) == (201, [field])


def test_versions_of_sub_agents_cannot_be_chosen_for_an_experiment(caller):
    body = {"targetId": "concierge", "versions": {"agents": {"helper": {"versionId": "x"}}}}

    refused = caller.post("/api/datasets/support/experiments", body)

    assert (refused.status_code, [issue["field"] for issue in refused.body["issues"]]) == (400, ["versions"])
    assert not Experiment.objects.exists()


def test_changes_are_checked_too(caller):
    item = ItemVersion.objects.get().item_id
    for path, body in (("", {"description": "New", "descripton": "x"}), (f"/items/{item}", {"descripton": "x"})):
        answer = caller.patch(f"/api/datasets/support{path}", body)
        assert (answer.status_code, [warning["field"] for warning in answer.body["warnings"]]) == (200, ["descripton"])


def warned(answer):
    return answer.status_code, [warning["field"] for warning in answer.body["warnings"]]


def test_bodies_of_experiments_and_results_are_checked(caller, external):
    path, item = f"/api/datasets/support/experiments/{external}", str(ItemVersion.objects.get().item_id)
    submitted = {"itemId": item, "outputs": "x", "scores": [{"scorerId": "exact", "score": 1, "reasons": ""}]}

    assert warned(caller.post(f"{path}/results", submitted)) == (201, ["outputs", "scores[0].reasons"])
    result = caller.get(f"{path}/results").body["results"][0]["id"]
    assert warned(caller.patch(f"{path}/results/{result}", {"tag": []})) == (200, ["tag"])
    assert warned(caller.patch(path, {"nane": "New"})) == (200, ["nane"])
    assert warned(caller.post(f"{path}/items/{item}/run", {"atempt": 1})) == (200, ["atempt"])
    assert warned(caller.post(f"{path}/finalize", {"now": True})) == (200, ["now"])
    assert warned(caller.post(f"/api/experiments/{external}/cancel?strict=false", {"now": True})) == (200, ["now"])
    compared = {"experimentIdA": external, "experimentIdB": external, "statistic": "mean"}
    assert warned(caller.post("/api/datasets/support/compare?page=0", compared)) == (200, ["statistic"])
    assert caller.post("/api/datasets/support/compare?page=0&strict=true", compared).status_code == 400


def test_bodies_of_scorers_and_their_settings_are_checked(caller):
    check = {
        "name": "Polite",
        "type": "check",
        "presetConfig": {"check": "includes", "value": "day", "caseSensitiv": True},
    }
    created = caller.post("/api/stored/scorers", {**check, "ownerId": "support", "scoreRange": {"maximum": 2}})
    path = f"/api/stored/scorers/{created.body['id']}"

    assert warned(created) == (201, ["scoreRange.maximum", *SETTING])
    change = {"presetConfig": {**check["presetConfig"], "valu": "x"}, "publish": False}
    assert warned(caller.patch(path, change)) == (200, [*SETTING, "presetConfig.valu"])
    assert caller.patch(f"{path}?strict=true", change).status_code == 400
    read = caller.get(path).body
    assert warned(caller.patch(path, {**read, "publish": False})) == (200, ["scoreRange.maximum", *SETTING])
    assert warned(caller.post(f"{path}/versions", {"message": "x"})) == (201, ["message"])


def test_a_scorer_keeps_its_id_and_its_team(caller):
    body = {"name": "Polite", "type": "check", "presetConfig": {"check": "no-tool-errors"}, "ownerId": "support"}
    path = f"/api/stored/scorers/{caller.post('/api/stored/scorers', body).body['id']}"

    refused = caller.patch(path, {"id": "other", "ownerId": "", "publish": False})

    assert (refused.status_code, [issue["field"] for issue in refused.body["issues"]]) == (400, ["id", "ownerId"])
    assert caller.patch(path, {"ownerId": "support", "publish": False}).status_code == 200


def test_bodies_of_scores_runs_and_gates_are_checked(caller):
    run = RunFactory(agent=Agent.objects.get())
    score = {"runId": str(run.pk), "scorerId": "people", "score": 1}
    manager = Caller(api_key(member("manager", "support")))
    gate = {"datasetId": "support", "scorer": "exact", "min": 0.5}

    assert warned(manager.post("/api/scores", {**score, "reasons": "x"})) == (201, ["reasons"])
    assert warned(manager.post("/api/scores", {"score": {**score, "reasons": "x"}})) == (201, ["score.reasons"])
    observed = {"traceId": str(run.pk), "scorerId": "people", "score": 1, "comment": "x"}
    assert warned(manager.post("/api/observability/scores", {"score": observed})) == (201, ["score.comment"])
    assert manager.post("/api/scores?strict=true", {**score, "reasons": "x"}).status_code == 400
    added = manager.post(f"/api/runs/{run.pk}/add-to-dataset", {"datasetId": "support", "groundtruth": "x"})
    assert warned(added) == (201, ["groundtruth"])
    path = "/api/stored/agents/concierge/gates"
    created = manager.post(path, {**gate, "minimum": 0.9})
    assert warned(created) == (201, ["minimum"])
    changed = manager.patch(f"{path}/{created.body['id']}", {**manager.get(path).body["gates"][0], "maxAge": 3})
    assert warned(changed) == (200, ["maxAge"])


@pytest.mark.parametrize(
    ("trajectory", "field"),
    [
        ({"maxSteps": "3"}, "maxSteps"),
        ({"ordering": "superset"}, "ordering"),
        ({"steps": ["a", 5]}, "steps[1]"),
        ({"blacklistedTools": "refund"}, "blacklistedTools"),
        ({"blacklistedSequences": [["a"], "b"]}, "blacklistedSequences[1]"),
    ],
)
def test_an_expected_trajectory_of_a_wrong_shape_is_refused(caller, trajectory, field):
    answer = caller.post("/api/datasets/support/items", {"input": "Two", "expectedTrajectory": trajectory})

    fields = [issue["field"] for issue in answer.body["issues"]]
    assert (answer.status_code, fields) == (400, [f"expectedTrajectory.{field}"])
    assert ItemVersion.objects.count() == 1
