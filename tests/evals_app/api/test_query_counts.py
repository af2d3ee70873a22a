"""The lists of evaluations take a constant number of queries: two sizes need the same."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.editing.change_context import change
from evals_app.api import experiments
from evals_app.models import Experiment, ReleaseGate
from evals_app.scorers.changes import change_scorer, create_scorer
from runs_app.models import Score
from tests.api_client import Caller
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

SMALL, LARGE = 2, 9


@pytest.fixture
def agent():
    return AgentFactory(id="clerk", owner_id="support")


@pytest.fixture
def user():
    return member("manager", "support")


@pytest.fixture
def caller(user):
    return Caller(api_key(user))


def count_queries(call):
    """Return the number of queries of a call, and its answer.

    It is the smallest of several: tables in the cache are read again after a second.
    """
    numbers = []
    for _ in range(4):
        with CaptureQueriesContext(connection) as queries:
            answer = call()
        assert answer.status_code == 200, answer.content
        numbers.append(len(queries))
    return min(numbers), answer


def test_a_list_of_datasets_takes_a_constant_number_of_queries(agent, caller):
    def grow(numbers):
        for number in numbers:
            dataset = make_dataset("One", pk=f"set-{number}", owner_id="support", scorer_keys=["exact"])
            ended(dataset, [1.0])

    assert_constant(caller, "/api/datasets?perPage=50", "datasets", grow)


def test_a_list_of_experiments_takes_a_constant_number_of_queries(agent, caller):
    dataset = make_dataset("One", owner_id="support")

    def grow(numbers):
        for number in numbers:
            other = make_dataset("One", pk=f"set-{number}", owner_id="support")
            for row in (ended(dataset, [1.0]), ended(other, [0.5])):
                Experiment.objects.filter(pk=row.pk).update(target_type="agent", target_id="clerk")

    assert_constant(caller, "/api/experiments?perPage=50", "experiments", grow, per_number=2)
    assert_constant(caller, "/api/datasets/support/experiments?perPage=50", "experiments", grow, start=100)


def test_a_list_of_results_takes_a_constant_number_of_queries(agent, caller):
    paths = []
    for number, size in enumerate((SMALL, LARGE)):
        dataset = make_dataset(*map(str, range(size)), pk=f"set-{number}", owner_id="support")
        experiment = ended(dataset, [0.5] * size)
        paths.append(f"/api/datasets/{dataset.pk}/experiments/{experiment.pk}/results?perPage=50")

    counts = [count_queries(lambda path=path: caller.get(path)) for path in paths]

    assert [len(answer.body["results"]) for _, answer in counts] == [SMALL, LARGE]
    assert counts[0][0] == counts[1][0]


def test_the_review_summary_reads_the_results_of_the_newest_experiments(user, caller, monkeypatch):
    monkeypatch.setattr(experiments, "MAX_SUMMARIES", 1)
    dataset = make_dataset("One", "Two", owner_id="support")
    _, newest, _ = (ended(dataset, scores) for scores in ([1.0, 1.0], [1.0, 1.0], []))

    assert {result.experiment_id for result in experiments.newest_results(user)} == {newest.pk}
    counts = caller.get("/api/experiments/review-summary").body["counts"]
    assert [(row["experimentId"], row["total"]) for row in counts] == [(str(newest.pk), 2)]


def test_a_list_of_scorers_takes_a_constant_number_of_queries(caller):
    def grow(numbers):
        for number in numbers:
            snapshot = {"name": "Says", "type": "check", "presetConfig": {"check": "includes", "value": "You"}}
            create_scorer(snapshot, owner_id="support", author="ann", id=f"says-{number}")
            change_scorer(f"says-{number}", {"description": "New"}, author="ann")

    assert_constant(caller, "/api/stored/scorers?perPage=50", "scorerDefinitions", grow)


def test_lists_of_scores_and_traces_take_a_constant_number_of_queries(agent, caller):
    run = RunFactory(agent=agent, owner_id="support")

    def grow(numbers):
        for number in numbers:
            other = RunFactory(agent=agent, owner_id="support", version_number=number)
            Score.objects.create(run=other, scorer="exact", score=0.5)
            Score.objects.create(run=run, scorer=f"exact-{number}", score=0.5)

    grow(range(SMALL))
    paths = [
        f"/api/scores/run/{run.pk}?perPage=50",
        "/api/scores/scorer/exact?perPage=50",
        "/api/scores/entity/AGENT/clerk?perPage=50",
        "/api/observability/scores?perPage=50",
        "/api/observability/traces?perPage=50",
        "/api/observability/traces/light?perPage=50",
    ]
    few = [count_queries(lambda path=path: caller.get(path)) for path in paths]
    grow(range(SMALL, LARGE))
    many = [count_queries(lambda path=path: caller.get(path)) for path in paths]

    for path, before, after in zip(paths, few, many, strict=True):
        assert len(after[1].content) > 1.5 * len(before[1].content), path
        assert after[0] == before[0], path


def test_the_spans_of_sub_agents_take_a_constant_number_of_queries(agent, caller):
    def run_with_sub_agents(count):
        calls = [("tool-call", {"toolCallId": str(number), "toolName": "agent-clerk"}) for number in range(count)]
        run = RunFactory(agent=agent, chunks=calls)
        for number in range(count):
            inner = [("tool-call", {"toolCallId": "1", "toolName": "refund"})]
            RunFactory(agent=agent, parent=run, parent_call_id=str(number), root_id=run.pk, chunks=inner)
        return run

    paths = [f"/api/observability/traces/{run_with_sub_agents(count).pk}" for count in (SMALL, LARGE)]
    counts = [count_queries(lambda path=path: caller.get(path)) for path in paths]

    assert [len(answer.body["spans"]) for _, answer in counts] == [1 + 3 * SMALL, 1 + 3 * LARGE]
    assert counts[0][0] == counts[1][0]


def test_the_scores_of_an_experiment_take_a_constant_number_of_queries(caller):
    few, many = (
        ended(make_dataset(*range(size), pk=f"set-{size}", owner_id="support"), [0.5] * size)
        for size in (SMALL, LARGE)
    )

    counts = [count_queries(lambda row=row: caller.get(f"/api/scores/run/{row.pk}?perPage=50")) for row in (few, many)]

    assert [len(answer.body["scores"]) for _, answer in counts] == [SMALL, LARGE]
    assert counts[0][0] == counts[1][0]


def assert_constant(caller, path, key, grow, *, per_number=1, start=0):
    grow(range(start, start + SMALL))
    few, answer = count_queries(lambda: caller.get(path))
    length = len(answer.body[key])
    grow(range(start + SMALL, start + LARGE))
    many, answer = count_queries(lambda: caller.get(path))

    assert len(answer.body[key]) == length + (LARGE - SMALL) * per_number
    assert many == few


# --- Release gates


def add_gates(agent, user, numbers):
    """Add gates over datasets of their own, with an experiment of the live version and one of the draft each."""
    draft, live = agent.versions.order_by("-version_number").first(), agent.active_version
    for number in numbers:
        dataset = make_dataset("One", pk=f"gated-{number}", owner_id="support")
        statistic = ReleaseGate.Statistic.DIFFERENCE if number % 2 else ReleaseGate.Statistic.MEAN
        ReleaseGate.objects.create(
            agent=agent, owner_id="support", dataset=dataset, scorer="exact", statistic=statistic, minimum=0.0
        )
        for version in (draft, live):
            row = ended(dataset, [1.0])
            Experiment.objects.filter(pk=row.pk).update(
                target_type="agent",
                target_id="clerk",
                snapshot_hash=version.snapshot_hash,
                total_items=1,
                succeeded_count=1,
                sub_agent_versions={"helper": "gone"},
                completed_at=row.created_at,
                summary={"scorers": {"exact": {"name": "Exact", "mean": 0.5, "low": 0.4, "high": 0.6}}},
            )


@pytest.fixture
def gated(agent, user):
    with change(publish=False):
        agent.edit({"instructions": "Be brief."})
    add_gates(agent, user, range(SMALL))
    return agent


def test_gates_take_a_constant_number_of_queries_in_the_api(gated, user, caller):
    few, answer = count_queries(lambda: caller.get("/api/stored/agents/clerk/gates"))
    add_gates(gated, user, range(SMALL, LARGE))
    many, answers = count_queries(lambda: caller.get("/api/stored/agents/clerk/gates"))

    assert [len(answer.body["gates"]), len(answers.body["gates"])] == [SMALL, LARGE]
    assert {gate["met"] for gate in answers.body["gates"]} == {True}
    assert all("helper" in gate["warning"] for gate in answers.body["gates"])
    assert many == few


def test_gates_take_a_constant_number_of_queries_on_the_page_of_quality(gated, user, client):
    client.force_login(user)
    few, _ = count_queries(lambda: client.get("/agents/clerk/quality"))
    add_gates(gated, user, range(SMALL, LARGE))
    many, page = count_queries(lambda: client.get("/agents/clerk/quality"))

    assert page.content.decode().count("Sub-agents changed since the experiment: helper.") == LARGE
    assert many == few


def test_publishing_asks_all_gates_by_the_same_number_of_queries(gated, user, caller):
    draft = gated.versions.order_by("-version_number").first()
    path = f"/api/stored/agents/clerk/versions/{draft.pk}/activate"
    ReleaseGate.objects.update(minimum=0.9)

    def refuse():
        answer = caller.post(path)
        assert (answer.status_code, answer.body["code"]) == (409, "gate_not_met")
        answer.status_code = 200
        return answer

    few, _ = count_queries(refuse)
    add_gates(gated, user, range(SMALL, LARGE))
    ReleaseGate.objects.update(minimum=0.9)
    many, answer = count_queries(refuse)

    assert answer.body["error"].count("needs 0.90") == LARGE
    assert many == few


def test_results_are_filtered_by_tags_in_the_same_queries(caller):
    experiment = ended(make_dataset("One", "Two", "Three", owner_id="support"), [1.0] * 3)
    results = experiment.results.order_by("item_id")
    for result, tags in zip(results, (["odd", "1"], ["odd"], ["even", 'a "b"']), strict=True):
        result.tags = tags
        result.save()
    path = f"/api/datasets/{experiment.dataset_id}/experiments/{experiment.pk}/results?"

    answers = {query: caller.get(path + query).body["results"] for query in ("tags=odd", "tags=odd&tags=1", "tags=od")}
    quoted = caller.get(path + "tags=a%20%22b%22").body["results"]
    all_of_them, _ = count_queries(lambda: caller.get(path))
    with_tags, _ = count_queries(lambda: caller.get(path + "tags=odd"))

    assert [len(rows) for rows in answers.values()] == [2, 1, 0]
    assert [result["input"] for result in quoted] == ["Three"]
    assert with_tags == all_of_them
