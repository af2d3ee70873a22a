"""Pages of datasets, experiments, comparisons and quality, without JavaScript."""

import re

import pytest
from django.urls import reverse

from evals_app.compare.jobs import compute_now
from evals_app.compare.word_differences import mark_answers, mark_words
from evals_app.datasets.changes import add_items, delete_items
from evals_app.models import Dataset, Experiment, ItemVersion, ReleaseGate
from evals_app.views import experiments
from jobs_app.models import Job
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(client):
    user = member("editor", "support")
    client.force_login(user)
    return user


def text(answer):
    assert answer.status_code == 200, answer.content.decode()[:500]
    return answer.content.decode()


def test_experiments_over_all_visible_datasets_are_listed(client, editor, django_assert_max_num_queries):
    assert 'href="/datasets">Choose a dataset' in text(client.get("/experiments")).replace("</svg>", "")
    rows = [ended(make_dataset("One", owner_id=owner, pk=owner), [0.5]) for owner in ("support", "secret")]

    with django_assert_max_num_queries(8):
        page = text(client.get("/experiments"))

    assert [f"/experiments/{row.pk}" in page for row in rows] == [True, False]
    assert '<a href="/datasets/support" dir="auto">' in page
    assert 'aria-current="page">Experiments' in page


def test_the_list_of_experiments_names_failed_items(client, editor):
    ended(make_dataset("One", owner_id="support"), [0.5])
    Experiment.objects.update(total_items=6, succeeded_count=2, failed_count=4)

    assert "6 of 6, 4 failed" in text(client.get("/experiments"))


def test_the_list_of_experiments_names_the_scorers_that_gave_a_score(client, editor):
    ended(make_dataset("One", owner_id="support"), [0.5])
    scorers = {key: {"name": key, "mean": mean} for key, mean in (("a", 0.5), ("b", None), ("c", 0.25), ("d", None))}
    Experiment.objects.update(summary={"scorers": scorers})

    assert 'data-label="Scores">a 0.50, c 0.25</td>' in text(client.get("/experiments"))


def test_an_experiment_shows_results_and_those_that_failed(client, editor):
    experiment = ended(make_dataset("First", "Second", owner_id="support"), [0.5, None])
    path = reverse("evals:experiment", args=[experiment.pk])

    page, failed = text(client.get(path)), text(client.get(f"{path}?only=failed"))

    assert "answer 0.5" in page
    assert "Failed:" in page
    assert "</svg>No</span>" in page.replace("\n", "")
    assert "First" not in failed
    assert "Second" in failed


def test_all_experiments_of_a_dataset_or_an_agent_are_listed(client, editor):
    AgentFactory(id="clerk", owner_id="support")
    for name in ("first", "second"):
        ended(make_dataset("One", pk=name, owner_id="support"), [1.0])
    Experiment.objects.filter(dataset="second").update(target_type="agent", target_id="clerk")

    dataset, quality = text(client.get("/datasets/second")), text(client.get("/agents/clerk/quality"))
    of_first, of_agent = (text(client.get(f"/experiments?{query}")) for query in ("dataset=first", "agent=clerk"))
    neither = text(client.get("/experiments?dataset=first&agent=clerk"))
    matching, other = (text(client.get("/experiments", {"q": words})) for words in ("CLERK", "printer"))

    assert 'href="/experiments?dataset=second">All experiments' in dataset
    assert 'href="/experiments?agent=clerk">All experiments' in quality
    assert ('href="/datasets/first"' in of_first, 'href="/datasets/second"' in of_first) == (True, False)
    assert ('href="/datasets/first"' in of_agent, 'href="/datasets/second"' in of_agent) == (False, True)
    assert ('href="/datasets/first"' in matching, 'href="/datasets/second"' in matching) == (False, True)
    assert "No matching experiments" in neither
    assert "No name, agent or dataset has this text." in other
    assert 'href="?agent=clerk" aria-label="Remove dataset First"' in neither


def test_an_experiment_is_compared_with_the_one_before_it_however_old(client, editor, monkeypatch):
    monkeypatch.setattr(experiments, "MAX_BASELINES", 1)
    dataset = make_dataset("One", owner_id="support")
    before, row, newer, newest = (ended(dataset, [score]) for score in (0.1, 0.2, 0.3, 0.4))
    Experiment.objects.update(target_type="agent", target_id="clerk")

    page = text(client.get(f"/experiments/{row.pk}"))

    assert f'value="{before.pk}" selected' in page
    assert f'value="{newest.pk}"' in page
    assert f'value="{newer.pk}"' not in page


def test_an_experiment_is_started_and_cancelled(client, editor):
    make_dataset("One", owner_id="support")
    agent = AgentFactory(owner_id="support")

    started = client.post("/datasets/support/experiments/start", {"target": f"agent:{agent.pk}", "version": "1"})
    page = text(client.get(started.url))
    client.post(f"{started.url}/cancel")

    assert "0 of 1 item" in page
    assert Experiment.objects.get().cancel_requested_at is not None


def test_a_cancelled_experiment_says_so_once(client, editor):
    row = new_experiment(make_dataset("One", owner_id="support"), editor, AgentFactory(owner_id="support"))
    Job.objects.all().delete()  # without a job it ends at once

    client.post(f"/experiments/{row.pk}/cancel")

    assert text(client.get(f"/experiments/{row.pk}")).count("Cancelled") == 1


def test_an_experiment_says_which_budget_ended_it(client, editor):
    row = ended(make_dataset("One", owner_id="support"), [0.5])
    Experiment.objects.filter(pk=row.pk).update(status="cancelled", stop_reason="The budget of $1 is spent.")

    assert "The budget of $1 is spent." in text(client.get(f"/experiments/{row.pk}"))


def test_a_comparison_speaks_in_words_with_what_got_worse_first(client, editor):
    dataset = make_dataset(*map(str, range(12)), owner_id="support")
    baseline, candidate = ended(dataset, [0.5] * 12), ended(dataset, [0.75] * 11 + [0.25], number=2)
    path = f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"
    compute_now(baseline, candidate)

    page = text(client.get(path))

    assert "Version 2 scores 0.21 higher" in page
    assert page.index("<ins>25</ins>") < page.index("<ins>75</ins>")


def test_an_unknown_filter_of_a_comparison_stays_one_parameter(client, editor):
    dataset = make_dataset(*map(str, range(51)), owner_id="support")
    baseline, candidate = ended(dataset, [0.5] * 51), ended(dataset, [0.75] * 51, number=2)
    compute_now(baseline, candidate)

    page = text(client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}&only=x%26a=1"))

    assert "only=x%26a%3D1&amp;page=2" in page


def test_a_comparison_says_on_which_side_an_item_failed(client, editor):
    dataset = make_dataset(*map(str, range(4)), owner_id="support")
    baseline, candidate = ended(dataset, [0.5] * 4), ended(dataset, [0.5] * 4, number=2)
    first, second, third, _ = dataset.items.order_by("id")
    baseline.results.filter(item__in=[first, second]).update(error={"message": "Gone."}, scores=[])
    candidate.results.filter(item__in=[first, third]).update(error={"message": "Gone."}, scores=[])
    compute_now(baseline, candidate)

    page = text(client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"))

    changes = re.findall(r'<td data-label="Change"[^>]*>([^<]*)<', page)
    assert changes == ["Failed after", "Failed in both", "0.00", "Failed before"]


def test_a_long_answer_is_folded_around_its_marked_words(client, editor):
    dataset = make_dataset(*map(str, range(12)), owner_id="support")
    baseline, candidate = ended(dataset, [0.5] * 12), ended(dataset, [0.25] * 12, number=2)
    for row, word in ((baseline, "seven"), (candidate, "nine")):
        row.results.update(output=f"The start. {'Same words. ' * 100}It costs {word} euros. {'More. ' * 100}The end.")
    compute_now(baseline, candidate)

    page = text(client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"))

    folded, opened = re.findall(r"<summary>(.*?)</summary>(.*?)</details>", page, re.DOTALL)[0]
    assert "It costs <del>seven</del> euros." in folded
    assert len(folded) < 600
    assert "Show <span" in folded
    assert opened.startswith("The start.")
    assert "<del>seven</del>" in opened
    assert opened.rstrip().endswith("The end.")


def test_a_comparison_shows_scores_calls_and_figures_of_each_item(client, editor):
    dataset = make_dataset(*map(str, range(12)), owner_id="support")
    baseline, candidate = ended(dataset, [0.5] * 12), ended(dataset, [0.75] * 11 + [0.25], number=2)
    chunks = [("tool-call", {"toolName": "word-count"})]
    run = RunFactory(owner_id="support", requested_by=editor, chunks=chunks)
    candidate.results.update(duration_ms=1500, tokens=77, cost="0.25")
    baseline.results.update(duration_ms=500, tokens=33, cost="0.5")
    candidate.results.filter(item=dataset.items.last()).update(run=run)
    compute_now(baseline, candidate)
    path = f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"

    page, worse, better = (text(client.get(f"{path}{more}")) for more in ("", "&only=worse", "&only=better"))

    assert page.count('class="interval-chart"') == 1
    assert "0.50 s" in page
    assert "1.50 s" in page
    assert "−$0.250000" in page
    assert "77 tokens · 1.5 s · 1 call: word-count" in page
    assert f'href="/runs/{run.pk}"' in worse
    assert (worse.count('data-label="Change"'), better.count('data-label="Change"')) == (1, 11)


def test_a_comparison_shows_the_mean_of_repeats_with_a_link_to_each_answer(client, editor):
    dataset = make_dataset("One", owner_id="support")
    baseline, candidate = ended(dataset, [0.5]), ended(dataset, [1.0], number=2)
    result, run = candidate.results.get(), RunFactory(owner_id="support", requested_by=editor)
    result.pk, result.attempt, result.run = None, 1, run
    result.scores = [{"scorerId": "exact", "scorerName": "Exact", "score": 0.5}]
    result.save(force_insert=True)
    compute_now(baseline, candidate)

    page = text(client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"))

    assert "Exact <b>0.75</b>" in page
    assert "mean of 2 answers, the first is shown" in page
    assert f'href="/runs/{run.pk}"' in page
    client.force_login(member("viewer", "support"))
    page = text(client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"))
    assert "mean of 2 answers, the first is shown" in page
    assert f'href="/runs/{run.pk}"' not in page


def test_a_comparison_takes_a_constant_number_of_queries(client, editor, django_assert_max_num_queries):
    dataset = make_dataset(*map(str, range(40)), owner_id="support")
    baseline, candidate = ended(dataset, [0.5] * 40), ended(dataset, [0.75] * 40, number=2)
    compute_now(baseline, candidate)

    with django_assert_max_num_queries(16):
        client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}")


def test_items_of_one_experiment_alone_are_listed(client, editor):
    dataset = make_dataset("Kept", "Gone", owner_id="support")
    baseline = ended(dataset, [0.5] * 2)
    delete_items(dataset, [dataset.items.last().pk])
    add_items(dataset, [{"input": "Added"}, {"input": "Also added"}])
    candidate = ended(dataset, [0.75] * 3, number=2)
    compute_now(baseline, candidate)

    page = text(client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"))

    lists = re.findall(r"Not compared: (.*?)</details>", page)
    assert [re.sub("<[^>]+>", " ", part).split() for part in lists] == [
        ["1", "item", "that", "only", "Results", "v1", "has", "Gone"],
        ["2", "items", "that", "only", "Results", "v2", "has", "Added", "Also", "added"],
    ]


def test_the_form_of_an_experiment_compares_the_older_one_first(client, editor):
    dataset = make_dataset(*map(str, range(12)), owner_id="support")
    older, newer = ended(dataset, [0.5] * 12), ended(dataset, [0.75] * 12, number=2)
    compute_now(older, newer)

    form = text(client.get(f"/experiments/{older.pk}"))
    page = text(client.get(f"/experiments/compare?a={newer.pk}&b={older.pk}&order=time"))

    assert '<input type="hidden" name="order" value="time">' in form
    assert "Version 2 scores 0.25 higher" in page


def test_long_answers_are_folded(client, editor):
    dataset = make_dataset("One", owner_id="support")
    experiment = ended(dataset, [0.5])
    experiment.results.update(output="x" * 400 + " the end")

    page = text(client.get(f"/experiments/{experiment.pk}"))

    assert f'<span class="long-text-start">{"x" * 159}…</span>' in page
    assert page.count("the end") == 1


def test_a_long_comparison_has_pages_and_names_its_scorers(client, editor, monkeypatch):
    monkeypatch.setattr("evals_app.views.result_filters.ROWS_PER_PAGE", 5)
    dataset = make_dataset(*map(str, range(12)), owner_id="support")
    baseline, candidate = ended(dataset, [0.5] * 12), ended(dataset, [0.75] * 12, number=2)
    candidate.summary = {"scorers": {"exact": {"name": "Same as expected"}}}
    candidate.save()
    compute_now(baseline, candidate)

    page = text(client.get(f"/experiments/compare?a={baseline.pk}&b={candidate.pk}"))

    assert ">Same as expected</th>" in page
    following = f"?a={baseline.pk}&amp;b={candidate.pk}&amp;page=2"
    assert f'href="{following}"' in page
    assert "6–10 of 12 items" in text(client.get(f"/experiments/compare{following.replace('&amp;', '&')}"))


def test_words_that_differ_are_marked():
    old, new = mark_words("Open at nine today", "Open at ten today")

    assert [span.text for span in old if span.marked] == ["nine"]
    assert [span.text for span in new if span.marked] == ["ten"]


def test_answers_with_few_words_in_common_are_shown_whole():
    before, after = "We open at nine in the morning.", "Please ask at the desk, they know."

    assert [len(side) for side in mark_answers(before, after)] == [1, 1]
    assert [side[0] for side in mark_answers(before, after)] == [(before, False), (after, False)]
    assert mark_answers(before, before.replace("nine", "ten")) == mark_words(before, before.replace("nine", "ten"))
    assert mark_answers("", "Yes") == ([], [("Yes", False)])


def test_quality_shows_points_with_a_table_and_what_a_gate_misses(client, editor):
    agent = AgentFactory(owner_id="support")
    experiment = ended(make_dataset("One", owner_id="support"), [0.5])
    figures = {"name": "Exact", "mean": 0.5, "low": 0.4, "high": 0.6, "min": 0.5, "count": 2}
    Experiment.objects.filter(pk=experiment.pk).update(
        target_type="agent", target_id=agent.pk, summary={"scorers": {"exact": figures}, "cost": 0.1, "p95Ms": 100}
    )
    ReleaseGate.objects.create(agent=agent, dataset_id="support", scorer="exact", minimum=0.8)

    page = text(client.get(f"/agents/{agent.pk}/quality"))

    assert '<circle class="score-point" cx="240.0"' in page
    assert "0.40 to 0.60" in page
    assert '<line class="score-bar" x1="24" x2="480" y1="46.4" y2="46.4" />' in page
    assert "The horizontal dashed line is the release gate: 0.80." in page
    assert "Version 1 needs 0.80 on &#x27;Equals the ground truth&#x27; over &#x27;Support&#x27;" in page


def test_strangers_find_no_page(client, editor):
    dataset = make_dataset("One", pk="secret", owner_id="elsewhere")
    experiment = ended(dataset, [1.0])
    item = ItemVersion.objects.get().item_id
    run = RunFactory(agent=AgentFactory(owner_id="elsewhere"), owner_id="elsewhere")

    for path in (
        "/datasets/secret",
        f"/datasets/secret/items/{item}/history",
        "/datasets/secret/experiments/start",
        f"/experiments/{experiment.pk}",
        f"/experiments/compare?a={experiment.pk}&b={experiment.pk}",
        f"/runs/{run.pk}/add-to-dataset",
    ):
        assert client.get(path).status_code == 404, path
    for path in ("items/add", f"items/{item}/delete", "experiments/start"):
        assert client.post(f"/datasets/secret/{path}").status_code == 404, path
    assert "secret" not in text(client.get("/datasets"))
    assert Dataset.objects.get().version == 1


def test_viewers_change_nothing(client):
    client.force_login(member("viewer", "support"))
    make_dataset("One", owner_id="support")

    assert "Add an item" not in text(client.get("/datasets/support"))
    assert client.post("/datasets/support/items/add", {"input": "x"}).status_code == 403
