"""Comparisons of two experiments in the API: pairs, the kept row, and who may."""

import html
import re
from math import ceil

import pytest
from agentcms_client.experiments import compare_steps
from agentcms_client.outcomes import ExperimentFailed
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agentcms.api import pagination
from agentcms.api.query_params import MAX_PER_PAGE
from evals_app.compare.jobs import COMPARE, basis_of
from evals_app.compare.pairs import compute_statistics
from evals_app.datasets.changes import add_items
from evals_app.models import Comparison, Experiment, ExperimentResult, ItemVersion
from jobs_app import runner
from jobs_app.models import Job
from tests.api_client import Caller
from tests.conftest import DRILL
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db

PATH = "/api/datasets/support/compare"
MANY_ITEMS = 2000 if DRILL else 40


def ended(dataset, scores, number=1, version=None):
    """Return an experiment that has ended, with a score for each item, or None for a failed one."""
    experiment = Experiment.objects.create(
        dataset=dataset, dataset_version=version or dataset.version, status="completed", version_number=number
    )
    items = ItemVersion.objects.at_version(experiment.dataset_version).filter(dataset=dataset).order_by("item_id")
    for item, score in zip(items, scores, strict=False):
        entries = [] if score is None else [{"scorerId": "exact", "scorerName": "Exact", "score": score}]
        ExperimentResult.objects.create(
            experiment=experiment,
            item_id=item.item_id,
            item_version=item,
            state="done",
            scores=entries,
            output=f"answer {score}",
            error=None if entries else {"message": "No"},
            duration_ms=100 * number,
        )
    return experiment


def body(a, b):
    return {"experimentIdA": str(a.pk), "experimentIdB": str(b.pk)}


def do_jobs():
    for job in Job.objects.filter(kind=COMPARE, state="queued"):
        assert runner.run_claimed(str(job.pk)).state == "done"


@pytest.fixture
def viewer():
    return Caller(api_key(member("viewer", "support")))


@pytest.fixture
def pair():
    dataset = make_dataset(*map(str, range(12)), owner_id="support")
    return ended(dataset, [0.5] * 12), ended(dataset, [0.75] * 11 + [0.25], number=2)


def test_a_job_computes_the_statistics_once(viewer, pair):
    first = viewer.post(PATH, body(*pair))
    do_jobs()
    second, third = (viewer.post(PATH, body(*pair)) for _ in range(2))

    assert (first.body["state"], first.body["statistics"]) == ("pending", None)
    entry = second.body["statistics"]["scorers"]["exact"]
    assert (entry["better"], entry["worse"], entry["pairs"]) == (11, 1, 12)
    assert entry["difference"] == pytest.approx(2.5 / 12)
    assert entry["sentence"].startswith("Version 2 scores 0.21 higher")
    assert second.body["statistics"]["durationMs"]["candidateMedian"] == 200
    assert third.body == second.body
    assert Job.objects.filter(kind=COMPARE).count() == 1


def test_statistics_are_computed_again_after_answers_were_scored_again(viewer, pair):
    viewer.post(PATH, body(*pair))
    do_jobs()

    # The answers are those of before, with the times at which their runs ended.
    Experiment.objects.filter(pk=pair[1].pk).update(completed_at=timezone.now())
    again = viewer.post(PATH, body(*pair)).body

    assert again["state"] == "pending"


def test_the_items_are_those_of_both_with_what_got_worse_first(viewer, pair):
    viewer.post(PATH, body(*pair))
    do_jobs()
    answer = viewer.post(PATH, body(*pair)).body

    first = answer["items"][0]
    assert answer["baselineId"] == str(pair[0].pk)
    assert [len(answer["items"]), first["input"]] == [12, "11"]
    assert first["results"][str(pair[1].pk)] == {"output": "answer 0.25", "scores": {"exact": 0.25}}


def test_the_items_come_in_pages_and_only_the_answers_of_one_are_read(viewer, pair):
    viewer.post(PATH, body(*pair))
    do_jobs()
    everything = viewer.post(PATH, body(*pair)).body["items"]

    with CaptureQueriesContext(connection) as queries:
        pages = [viewer.post(f"{PATH}?perPage=5&page={page}", body(*pair)).body for page in range(4)]

    assert [len(page["items"]) for page in pages] == [5, 5, 2, 0]
    assert [item for page in pages for item in page["items"]] == everything
    assert [page["pagination"]["hasMore"] for page in pages] == [True, True, False, False]
    assert {page["pagination"]["total"] for page in pages} == {12}
    reads = [query["sql"] for query in queries if '"output"' in query["sql"]]
    assert len(reads) == 3
    assert all('"item_id" IN' in sql for sql in reads)


def test_more_answers_than_a_page_may_have_are_refused_with_the_way_out(viewer, pair, monkeypatch):
    monkeypatch.setattr(pagination, "MAX_PAGE_MB", 0.0005)

    answer = viewer.post(PATH, body(*pair))

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "perPage")
    assert viewer.post(f"{PATH}?perPage=1", body(*pair)).status_code == 200


def test_items_of_one_side_are_listed_and_not_averaged_in(viewer):
    dataset = make_dataset("a", "b", owner_id="support")
    before = ended(dataset, [1.0, 0.0])
    add_items(dataset, [{"input": "c"}])
    after = ended(dataset, [1.0, 1.0, 0.0])

    viewer.post(PATH, body(before, after))
    do_jobs()
    statistics = viewer.post(PATH, body(before, after)).body["statistics"]

    assert (statistics["pairs"], len(statistics["onlyCandidate"]), statistics["onlyBaseline"]) == (2, 1, [])
    assert statistics["scorers"]["exact"]["candidateMean"] == 1.0


def test_items_that_did_not_run_are_in_no_duration(pair):
    stopped = pair[1].results.order_by("pk")[:1].values("pk")
    pair[1].results.filter(pk__in=stopped).update(error={"message": "The run was stopped."}, duration_ms=0)

    durations = compute_statistics(*pair)["durationMs"]

    assert (durations["pairs"], durations["candidateMean"]) == (11, 200)


def test_repeats_are_averaged_within_an_item(viewer):
    dataset = make_dataset("a", owner_id="support")
    before, after = ended(dataset, [0.5]), ended(dataset, [1.0])
    result = after.results.get()
    result.pk, result.attempt, result.scores = None, 1, [{"scorerId": "exact", "score": 0.0}]
    result.save(force_insert=True)

    viewer.post(PATH, body(before, after))
    do_jobs()

    entry = viewer.post(PATH, body(before, after)).body["statistics"]["scorers"]["exact"]
    assert (entry["pairs"], entry["candidateMean"], entry["same"]) == (1, 0.5, 1)
    (item,) = viewer.post(PATH, body(before, after)).body["items"]
    assert item["results"][str(after.pk)] == {"output": "answer 1.0", "scores": {"exact": 0.5}}


def test_running_and_foreign_experiments_are_refused(viewer, pair):
    other = make_dataset("x", pk="other", owner_id="support")
    foreign = ended(make_dataset("x", pk="foreign", owner_id="elsewhere"), [1.0])
    Experiment.objects.filter(pk=pair[1].pk).update(status="running")

    assert viewer.post(PATH, body(*pair)).body["code"] == "experiment_running"
    assert viewer.post(PATH, body(pair[0], ended(other, [1.0]))).status_code == 404
    assert viewer.post(PATH, body(pair[0], foreign)).status_code == 404
    assert viewer.post(PATH, {"experimentIdA": str(pair[0].pk)}).status_code == 400
    assert Caller(api_key(member("manager", "elsewhere"))).post(PATH, body(*pair)).status_code == 404
    assert not Comparison.objects.exists()


def queries_of_a_comparison(viewer, dataset):
    """Return the queries of a request that reads a computed comparison of all items of a dataset."""
    sides = body(ended(dataset, [0.5] * dataset.item_count), ended(dataset, [0.75] * dataset.item_count, number=2))
    viewer.post(PATH, sides)
    do_jobs()
    with CaptureQueriesContext(connection) as captured:
        answer = viewer.post(PATH, sides)
    assert answer.body["state"] == "done"
    assert len(answer.body["items"]) == min(dataset.item_count, MAX_PER_PAGE)
    return [query["sql"] for query in captured]


def test_items_are_read_in_one_query_for_each_part(viewer):
    dataset = make_dataset(*map(str, range(3)), owner_id="support")
    few = queries_of_a_comparison(viewer, dataset)
    add_items(dataset, [{"input": str(number)} for number in range(3, MANY_ITEMS)])
    many = queries_of_a_comparison(viewer, dataset)

    parts = ceil(min(MANY_ITEMS, MAX_PER_PAGE) / pagination.ROWS_PER_READ)
    assert len(many) == len(few) + parts - 1
    assert len(few) <= 15
    # By the items alone: SQLite would search all results of the state for each part.
    reads = [sql for sql in many if '"output"' in sql]
    assert reads
    assert not any('."state" = ' in sql for sql in reads)


def test_a_comparison_that_fails_says_so(viewer, client, pair):
    viewer.post(PATH, body(*pair))
    ExperimentResult.objects.filter(experiment=pair[0]).update(scores=[{"scorerId": "exact"}])  # of another release

    job = runner.run_claimed(str(Job.objects.get(kind=COMPARE).pk))
    client.force_login(get_user_model().objects.get(memberships__owner_id="support"))
    page = client.get("/experiments/compare", {"a": str(pair[0].pk), "b": str(pair[1].pk)}).content.decode()

    assert job.state == "failed"
    assert "The statistics could not be computed." in page
    assert Comparison.objects.get().state == "failed"
    with pytest.raises(ExperimentFailed, match="could not compare the experiments"):
        carry_out(
            compare_steps({"id": "1"}, {"id": "2", "datasetId": "support"}, 60),
            {"state": "failed", "statistics": None},
        )


def fail_job(**changes):
    """End the job of the comparison as beat does after its last attempt."""
    Job.objects.filter(kind=COMPARE).update(state="failed", **changes)


@pytest.mark.parametrize("lose_job", [Job.objects.all().delete, lambda: Job.objects.update(state="done")])
def test_a_comparison_whose_job_is_gone_is_computed_by_another(viewer, pair, lose_job):
    """Such as by the clean-up, or by a process of another release that ended the job without a result."""
    viewer.post(PATH, body(*pair))
    lose_job()

    assert viewer.post(PATH, body(*pair)).body["state"] == "pending"
    assert viewer.post(PATH, body(*pair)).body["state"] == "pending"
    assert Job.objects.filter(kind=COMPARE, state="queued").count() == 1  # the second look has asked for no other
    do_jobs()
    assert viewer.post(PATH, body(*pair)).body["state"] == "done"


def test_a_comparison_of_an_earlier_release_that_waits_is_computed(viewer, pair):
    basis = basis_of(*pair)
    Comparison.objects.create(baseline=pair[0], candidate=pair[1], basis=basis)

    assert viewer.post(PATH, body(*pair)).body["state"] == "pending"
    do_jobs()

    assert viewer.post(PATH, body(*pair)).body["state"] == "done"


def test_a_comparison_whose_job_gave_up_says_so_and_is_computed_again_on_request(viewer, pair):
    viewer.post(PATH, body(*pair))
    fail_job(error="The job did not finish in 5 attempts.")

    assert [viewer.post(PATH, body(*pair)).body["state"] for _ in range(2)] == ["failed", "failed"]
    assert not Job.objects.filter(state="queued").exists()  # or each look would start what fails
    assert viewer.post(PATH, body(*pair) | {"again": True}).body["state"] == "pending"
    do_jobs()
    assert viewer.post(PATH, body(*pair) | {"again": True}).body["state"] == "done"
    assert Job.objects.filter(kind=COMPARE).count() == 2  # what is computed is not computed again


def test_the_page_has_a_button_that_computes_a_failed_comparison_again(viewer, client, pair):
    viewer.post(PATH, body(*pair))
    fail_job()
    client.force_login(get_user_model().objects.get(memberships__owner_id="support"))
    query = {"a": str(pair[0].pk), "b": str(pair[1].pk)}
    page = client.get("/experiments/compare", query).content.decode()
    (action,) = re.findall(r'action="(/experiments/compare/again[^"]*)"', page)

    answer = client.post(html.unescape(action), follow=True)
    do_jobs()

    assert "The statistics are being computed and appear here" in answer.content.decode()
    assert "scores 0.21 higher" in client.get("/experiments/compare", query).content.decode()


def test_scores_by_different_versions_of_a_scorer_are_said_to_be_so(viewer, client, pair):
    for version, experiment in enumerate(pair, 1):
        experiment.scorer_versions = {"exact": version, "tone": 3}
        experiment.save()
    viewer.post(PATH, body(*pair))
    do_jobs()
    client.force_login(get_user_model().objects.get(memberships__owner_id="support"))

    answer = viewer.post(PATH, body(*pair)).body
    page = client.get("/experiments/compare", {"a": str(pair[0].pk), "b": str(pair[1].pk)}).content.decode()

    assert answer["differingScorerVersions"] == {"exact": {"baseline": 1, "candidate": 2}}
    assert page.count("Scored by v1 of the scorer before and v2 after") == 1


def test_nobody_starts_the_comparison_of_another_team(viewer, client, pair):
    client.force_login(member("manager", "elsewhere"))

    answer = client.post(f"/experiments/compare/again?a={pair[0].pk}&b={pair[1].pk}")

    assert (answer.status_code, Job.objects.filter(kind=COMPARE).count()) == (404, 0)


def carry_out(steps, answer):
    """Give each request of steps the same answer."""
    next(steps)
    while True:
        steps.send(answer)
