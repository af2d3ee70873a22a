"""The tab Quality: scores of experiments and of answers in use as two series, in a constant number of queries."""

import re

import pytest

from evals_app.models import Experiment
from evals_app.quality.answers_in_use import find_online_scores
from evals_app.quality.plots import PlotValue, build_plot
from evals_app.views import quality
from runs_app.models import Score
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    return AgentFactory(id="clerk", owner_id="support")


def score_answers(agent, number, *scores, **columns):
    for score in scores:
        run = RunFactory(agent=agent, owner_id="support", version_number=number)
        Score.objects.create(run=run, scorer="exact", score=score, **columns)


def test_answers_in_use_are_a_second_series(client, agent):
    experiment = ended(make_dataset("One", owner_id="support"), [0.5])
    figures = {"name": "Exact", "mean": 0.5, "low": 0.4, "high": 0.6, "min": 0.5, "count": 1}
    summary = {"scorers": {"exact": figures}, "cost": 0.1, "p95Ms": 100}
    Experiment.objects.filter(pk=experiment.pk).update(target_type="agent", target_id="clerk", summary=summary)
    score_answers(agent, 1, 1.0, 0.0)
    score_answers(agent, 2, 1.0)
    score_answers(agent, 2, 0.0, source=Score.Source.PERSON)
    client.force_login(member("viewer", "support"))

    page = client.get("/agents/clerk/quality").content.decode()

    assert (page.count('class="score-point"'), page.count('class="score-square"')) == (1, 2)
    assert page.count('<td data-label="Source">Answers in use</td>') == 2
    assert find_online_scores(agent)[0][:5] == ("exact", 1, None, 2, 0.5)
    assert "squares the answers in use" in page
    assert "Each version of the scorer" not in page


def test_failed_experiments_take_no_place_of_complete_ones(client, agent, monkeypatch):
    monkeypatch.setattr(quality, "MAX_EXPERIMENTS", 1)
    dataset = make_dataset("One", owner_id="support")
    figures = {"name": "Exact", "mean": 0.5, "low": 0.4, "high": 0.6, "min": 0.5, "count": 1}
    for status in ("completed", "failed"):
        row = ended(dataset, [0.5])
        values = {"target_id": "clerk", "summary": {"scorers": {"exact": figures}}, "status": status}
        Experiment.objects.filter(pk=row.pk).update(target_type="agent", **values)
    client.force_login(member("viewer", "support"))

    page = client.get("/agents/clerk/quality").content.decode()

    assert page.count('class="score-point"') == 1


def test_a_new_version_of_a_scorer_is_another_line(client, agent):
    dataset = make_dataset("One", owner_id="support")
    figures = {"name": "Exact", "mean": 0.5, "low": 0.4, "high": 0.6, "min": 0.5, "count": 1}
    for number, scorer_version in ((1, 1), (2, 1), (2, 2), (3, 2)):
        row = ended(dataset, [0.5], number=number)
        Experiment.objects.filter(pk=row.pk).update(
            target_type="agent",
            target_id="clerk",
            summary={"scorers": {"exact": figures}},
            scorer_versions={"exact": scorer_version},
        )
        score_answers(agent, number, 0.25, scorer_version=scorer_version)
    client.force_login(member("viewer", "support"))

    page = client.get("/agents/clerk/quality").content.decode()

    lines = re.findall(r'<polyline class="([^"]+)" points="([^"]+)"', page)
    assert [(name, len(points.split())) for name, points in lines] == [
        ("score-trend score-trend-1", 2),
        ("score-trend score-trend-0", 2),
        ("score-trend score-trend-1 score-trend-online", 2),
        ("score-trend score-trend-0 score-trend-online", 2),
    ]
    assert re.findall(r'<td data-label="Scorer">(v\d)</td>', page) == ["v1", "v1", "v1", "v2", "v1", "v2", "v2", "v2"]
    legend = page.partition("Each version of the scorer has a line of its own:")[2].partition("</p>")[0]
    assert re.findall(r"v\d", legend) == ["v1", "v2"]


def test_answers_in_use_are_averaged_by_version_of_the_scorer(agent):
    score_answers(agent, 1, 1.0, 0.5, scorer_version=1)
    score_answers(agent, 1, 0.0, scorer_version=2)

    rows = [(row.version_number, row.scorer_version, row.answer_count, row.mean) for row in find_online_scores(agent)]
    assert rows == [(1, 1, 2, 0.75), (1, 2, 1, 0.0)]


def test_quality_without_experiments_leads_to_the_datasets(client, agent):
    client.force_login(member("viewer", "support"))

    page = client.get("/agents/clerk/quality").content.decode()

    assert "No experiments yet" in page
    assert '<a class="button" href="/datasets">Choose a dataset</a>' in page


def test_a_scorer_that_no_experiment_uses_has_a_plot_of_its_own(client, agent):
    score_answers(agent, 1, 0.25)
    client.force_login(member("viewer", "support"))

    page = client.get("/agents/clerk/quality").content.decode()

    assert "Equals the ground truth in use" in page


def test_more_experiments_and_answers_need_no_more_queries(client, agent, django_assert_max_num_queries):
    dataset = make_dataset("One", owner_id="support")
    figures = {"name": "Exact", "mean": 0.5, "low": 0.4, "high": 0.6, "min": 0.5, "count": 1}
    for number in range(1, 21):
        row = ended(dataset, [0.5], number=number)
        Experiment.objects.filter(pk=row.pk).update(
            target_type="agent", target_id="clerk", summary={"scorers": {"exact": figures}}
        )
        score_answers(agent, number, 0.5)
    client.force_login(member("viewer", "support"))

    with django_assert_max_num_queries(18):
        page = client.get("/agents/clerk/quality").content.decode()

    assert page.count('class="score-point"') == 20


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([(0.95, 0.8, 1.1)], (0.0, 1.0)),
        ([(0.02, -0.05, 0.09)], (0.0, 1.0)),
        ([(7.3, 6.2, 8.4)], (0.0, 8.5)),
        ([(-0.5, -0.8, -0.2)], (-1.0, 1.0)),
        ([(61.0, 40.0, 82.0), (3.0, 2.0, 4.0)], (0.0, 85.0)),
    ],
)
def test_the_axis_of_a_plot_ends_at_round_numbers(values, ends):
    plot = build_plot("own", "Own", [PlotValue(1, *bounds, 10) for bounds in values], [])

    lines = [line.value for line in plot.lines]
    assert (lines[0], lines[-1]) == ends
    assert all(24 <= y <= 136 for point in plot.points for y in (point.y, point.y_low, point.y_high))
    # The table beneath says the same.
    assert all(ends[0] <= bound <= ends[1] for point in plot.points for bound in (point.value.low, point.value.high))


def test_unknown_costs_and_durations_are_shown_as_unknown(client, agent):
    experiment = ended(make_dataset("One", owner_id="support"), [0.5])
    figures = {"name": "Exact", "mean": 0.5, "low": 0.4, "high": 0.6, "min": 0.5, "count": 1}
    summary = {"scorers": {"exact": figures}}
    Experiment.objects.filter(pk=experiment.pk).update(target_type="agent", target_id="clerk", summary=summary)
    score_answers(agent, 1, 1.0)
    client.force_login(member("viewer", "support"))

    page = client.get("/agents/clerk/quality").content.decode()

    cells = re.findall(r'<td data-label="(?:Cost|Duration, p95)"[^>]*>(.*?)</td>', page)
    assert sorted(re.sub(r"<[^>]+>", "", cell) for cell in cells) == ["in Usage"] * 2 + ["unknown"] * 2
    assert page.count('href="/agents/clerk/usage"') == 2
