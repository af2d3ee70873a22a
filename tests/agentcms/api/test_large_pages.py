"""Pages of rows that have megabytes: they are read in parts, and refused before they fill the memory."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agentcms.api import pagination
from agents_app.api import representation_cache
from evals_app.datasets.changes import change_item
from evals_app.models import DatasetItem, ExperimentResult
from runs_app.models import Score
from tests.api_client import Caller
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

COUNT = 5
TEXT = "word " * 1000
ROUTES = {
    "agents": "/api/stored/agents",
    "versions": "/api/stored/agents/agent-0/versions",
    "items": "/api/datasets/support/items",
    "results": "/api/datasets/support/experiments/{experiment}/results",
    "tagged results": "/api/datasets/support/experiments/{experiment}/results?tags=seen",
    "spans": "/api/observability/traces",
    "scores": "/api/observability/scores",
    "scores of an experiment": "/api/scores/run/{experiment}",
    "history": "/api/datasets/edited/items/{item}/history",
    "messages": "/api/memory/threads/t/messages",
}


@pytest.fixture
def scene(monkeypatch):
    """Return the caller and the experiment of a team with COUNT large rows of each kind, read two at a time."""
    monkeypatch.setattr(pagination, "ROWS_PER_READ", 2)
    monkeypatch.setattr(representation_cache._texts, "_max_value_size", 0)
    user = member("publisher")
    agents = [AgentFactory(id=f"agent-{number}", instructions=f"{number} {TEXT}") for number in range(COUNT)]
    for number in range(COUNT - 1):
        agents[0].instructions = f"{TEXT} {number}"
        agents[0].save()
    dataset = make_dataset(*(f"{number} {TEXT}" for number in range(COUNT)))
    experiment = new_experiment(dataset, user, start=False)
    for version in dataset.item_versions.order_by("item_id"):
        ExperimentResult.objects.create(
            experiment=experiment,
            item=version.item,
            item_version=version,
            state="done",
            output=TEXT,
            tags=["seen"],
            scores=[{"scorerId": "exact", "score": 1.0}],
            completed_at=timezone.now(),
        )
    edited = make_dataset(TEXT, pk="edited")
    for number in range(1, COUNT):
        change_item(edited, edited.items.get().pk, {"input": f"{number} {TEXT}"})
    for number in range(COUNT):
        run = RunFactory(agent=agents[0], requested_by=user, prompt=f"{number} {TEXT}")
        Score.objects.create(run=run, scorer="exact", score=1)
    add_thread(user, texts=[("user", f"{number} {TEXT}") for number in range(COUNT)])
    return Caller(api_key(user)), experiment


def path_of(name, experiment):
    return ROUTES[name].format(experiment=experiment.pk, item=DatasetItem.objects.get(dataset="edited").pk)


def rows_of(answer):
    assert answer.status_code == 200, answer.body
    return next(value for value in answer.body.values() if isinstance(value, list))


@pytest.mark.parametrize("name", ROUTES)
def test_a_page_that_is_read_in_parts_is_complete_and_in_order(scene, name):
    caller, experiment = scene
    path = path_of(name, experiment)
    separator = "&" if "?" in path else "?"

    rows = rows_of(caller.get(f"{path}{separator}perPage=100"))
    pages = [rows_of(caller.get(f"{path}{separator}perPage=3&page={page}")) for page in range(3)]

    assert (len(rows), [*map(len, pages)]) == (COUNT, [3, 2, 0])
    pages = reversed(pages) if name == "messages" else pages  # the newest page comes first
    assert [row for page in pages for row in page] == rows


@pytest.mark.parametrize("name", ROUTES)
def test_a_page_that_is_too_large_is_refused_with_the_way_out(scene, name, monkeypatch):
    caller, experiment = scene
    path = path_of(name, experiment)
    separator = "&" if "?" in path else "?"
    monkeypatch.setattr(pagination, "MAX_PAGE_MB", 0.012)

    answer = caller.get(f"{path}{separator}perPage=100")

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "perPage")
    assert "Send a smaller perPage." in answer.body["issues"][0]["message"]
    assert len(rows_of(caller.get(f"{path}{separator}perPage=1"))) == 1


@pytest.mark.parametrize("name", ["items", "results", "spans"])
def test_all_rows_are_sorted_once_for_a_page(scene, name):
    caller, experiment = scene
    with CaptureQueriesContext(connection) as queries:
        rows_of(caller.get(f"{path_of(name, experiment)}?perPage=100"))

    assert len([query for query in queries if " LIMIT 100" in query["sql"]]) == 1
    assert not [query for query in queries if " OFFSET " in query["sql"]]
