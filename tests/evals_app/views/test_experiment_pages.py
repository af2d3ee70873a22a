"""Pages of experiments: the start with an estimate, filters, reviews, and another attempt at what failed."""

import html
import json
import re
from decimal import Decimal

import pytest

from evals_app.compare.interval_plots import build_score_plots
from evals_app.experiments.figures import summarize_experiment
from evals_app.models import Dataset, Experiment, ExperimentResult, ItemVersion
from evals_app.views import start_experiment
from tests.evals_app.compare.test_comparisons import ended
from tests.evals_app.experiment_runs import make_dataset, new_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

START = "/datasets/support/experiments/start"


@pytest.fixture
def editor(client):
    user = member("editor", "support")
    client.force_login(user)
    return user


@pytest.fixture
def agent():
    return AgentFactory(id="clerk", owner_id="support", model=DEMO, instructions="")


@pytest.fixture
def atlas():
    """Return an agent that cannot answer, because its provider has no key."""
    return AgentFactory(
        id="atlas", name="Atlas", owner_id="support", model={"provider": "anthropic", "name": "claude"}
    )


def text(answer, status=200):
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def test_the_cost_is_estimated_from_the_last_runs_before_the_start(client, editor, agent):
    make_dataset("One", "Two", owner_id="support", target_ids=["clerk"])
    RunFactory(agent=agent, owner_id="support", cost=Decimal("0.02"))
    RunFactory(agent=agent, owner_id="support", cost=Decimal("0.04"))

    page = text(client.get(f"{START}?repeats=3"))
    posted = text(client.post(START, {"target": "agent:clerk", "repeats": "2", "estimate": "yes"}))

    assert "6 runs, about $0.1800, from the last 2 runs of this agent." in page
    assert "4 runs, about $0.1200" in posted
    assert not Experiment.objects.exists()


def test_all_options_of_the_form_reach_the_experiment(client, editor, agent):
    make_dataset("One", owner_id="support")
    options = {"version": "1", "scorers": ["exact"], "repeats": "2", "concurrency": "3", "memory": "per-item"}

    client.post(START, {"target": "agent:clerk", **options, "max_cost": "0.5", "name": "Nightly", "seed": "7"})

    row = Experiment.objects.get()
    assert (row.version_number, row.scorer_keys, row.repeats, row.concurrency) == (1, ["exact"], 2, 3)
    assert row.seed == 7
    assert (row.memory, row.budget, row.name) == ({"thread": "per-item"}, {"maxCost": 0.5}, "Nightly")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "agent:nobody"}, "Select a valid choice. agent:nobody"),
        ({"target": "workflow:triage-ticket", "seed": "7"}, "Only experiments over agents have this. Leave it out."),
        ({"version": "99"}, "Target &#x27;clerk&#x27; of the experiment was not found at version &#x27;99&#x27;."),
        ({"repeats": "11"}, "This must be less than or equal to 10."),
        ({"scorers": ["missing"]}, "Select a valid choice. missing"),
    ],
)
def test_wrong_options_are_named_and_start_nothing(client, editor, agent, options, message):
    make_dataset("One", owner_id="support")

    assert message in text(client.post(START, {"target": "agent:clerk", **options}), 422)
    assert not Experiment.objects.exists()


def test_a_seed_of_0_that_a_workflow_cannot_have_is_named_at_its_field(client, editor):
    make_dataset("One", owner_id="support")

    answer = client.post(START, {"target": "workflow:triage-ticket", "seed": "0"})

    assert [*answer.context["form"].errors] == ["seed"]


def test_an_agent_without_a_model_that_can_answer_is_not_started(client, editor, agent):
    make_dataset("One", owner_id="support")
    agent.edit({"model": {"provider": "anthropic", "name": "claude"}})

    page = text(client.post(START, {"target": f"agent:{agent.pk}", "version": "live"}), 422)
    client.post(START, {"target": f"agent:{agent.pk}", "version": "1"})

    assert f"{agent.name} cannot answer: Anthropic has no API key." in page
    assert [row.version_number for row in Experiment.objects.all()] == [1]


def test_the_form_offers_an_agent_that_can_answer_first(client, editor, agent, atlas):
    make_dataset("One", owner_id="support")

    page = text(client.get(START))

    assert '<option value="agent:clerk" selected>' in page
    assert "cannot answer" not in page
    assert page.index('value="agent:atlas"') < page.index('value="agent:clerk"')


def test_the_form_says_at_once_that_an_agent_cannot_answer(client, editor, agent, atlas):
    make_dataset("One", owner_id="support", target_ids=["atlas"])

    page = text(client.get(START))
    other = text(client.get(f"{START}?target=agent:clerk"))
    absent = text(client.get(f"{START}?target=agent:clerk&version=99"))

    assert '<option value="agent:atlas" selected>' in page
    assert "Atlas cannot answer: Anthropic has no API key." in page
    assert "cannot answer" not in other
    assert "Target &#x27;clerk&#x27; of the experiment was not found at version &#x27;99&#x27;." in absent


def test_of_the_agents_of_a_dataset_one_that_can_answer_is_offered(client, editor, agent, atlas):
    make_dataset("One", owner_id="support", target_ids=["atlas", "clerk"])

    assert '<option value="agent:clerk" selected>' in text(client.get(START))


def test_a_workflow_or_a_scorer_is_started_instead_of_an_agent(client, editor, agent):
    dataset = make_dataset(
        {"input": {"output": "One"}}, owner_id="support", target_type="scorer", target_ids=["exact"]
    )

    page = text(client.get(START))
    client.post(START, {"target": "scorer:exact", "version": "live"})
    client.post(START, {"target": "workflow:triage-ticket"})

    assert '<option value="scorer:exact" selected>' in page
    assert '<optgroup label="Workflows">' in page
    assert "1 call. Their cost is not known before they are made." in page
    started = [*dataset.experiments.order_by("created_at").values_list("target_type", "target_id")]
    assert started == [("scorer", "exact"), ("workflow", "triage-ticket")]


def test_results_that_got_worse_come_first(client, editor):
    dataset = make_dataset("First", "Second", "Third", owner_id="support")
    ended(dataset, [0.5, 0.5, 1.0])
    candidate = ended(dataset, [0.6, 0.4, 0.2], number=2)

    page = text(client.get(f"/experiments/{candidate.pk}?only=worse"))

    assert "Worse than v1" in page
    assert "First" not in page
    assert page.index("Third") < page.index("Second")


def test_results_are_not_worse_than_those_of_their_own_version(client, editor):
    dataset = make_dataset("First", owner_id="support")
    ended(dataset, [0.5])
    repeated = ended(dataset, [0.4])

    page = text(client.get(f"/experiments/{repeated.pk}"))

    assert "Worse than before" in page
    assert "Worse than v1" not in page


def test_a_judge_that_is_better_the_lower_it_scores_is_marked(client, editor):
    experiment = ended(make_dataset("One"), [0.5])
    figures = summarize_experiment(experiment)["scorers"]["exact"]
    for lower_is_better, count in ((False, 0), (True, 1)):
        scorers = {"exact": {**figures, "lowerIsBetter": lower_is_better}}
        Experiment.objects.update(summary={"scorers": scorers})

        page = text(client.get(f"/experiments/{experiment.pk}"))

        assert page.count("(lower is better)") == count


def test_the_id_of_a_scorer_may_be_any_word(client, editor):
    experiment = ended(make_dataset("One"), [0.5])
    figures = summarize_experiment(experiment)["scorers"]["exact"]
    Experiment.objects.update(summary={"scorers": {"items": {**figures, "name": "Number of items"}}})

    assert "Number of items" in text(client.get(f"/experiments/{experiment.pk}"))
    assert "Number of items 0.50" in text(client.get("/experiments"))


def test_a_result_is_reviewed_with_tags_and_a_comment(client, editor):
    experiment = ended(make_dataset("First", "Second", owner_id="support"), [0.5, 0.5])
    first = experiment.results.get(item_version__input="First")
    path = f"/experiments/{experiment.pk}"
    fields = {"review": "needs-review", "tags": "tone, tone, short", "comment": "Too short."}

    plain = client.post(f"{path}/results/{first.pk}/review", fields)
    in_place = client.post(f"{path}/results/{first.pk}/review", fields, headers={"HX-Request": "true"})

    first.refresh_from_db()
    assert (first.review, first.tags, first.comment) == ("needs-review", ["tone", "short"], "Too short.")
    assert plain.url == f"{path}?#result-{first.pk}"
    assert f'<tr id="result-{first.pk}">' in text(in_place)
    assert json.loads(in_place.headers["HX-Trigger"])["review-saved"]["message"] == "Review saved."
    for query in ("only=needs-review", "tag=tone"):
        page = text(client.get(f"{path}?{query}"))
        assert ("First" in page, "Second" in page) == (True, False)


def test_a_review_without_scripts_returns_to_its_page(client, editor):
    questions = [f"Question {number}" for number in range(51)]
    experiment = ended(make_dataset(*questions, owner_id="support"), [0.5] * 51)
    page = text(client.get(f"/experiments/{experiment.pk}?only=all&page=2"))
    (result,) = re.findall(r'action="/experiments/[^"]*/results/([^/"]*)/review"', page)
    query = html.unescape(re.search(r'name="query" value="([^"]*)"', page)[1])

    saved = client.post(
        f"/experiments/{experiment.pk}/results/{result}/review", {"review": "reviewed", "query": query}
    )

    assert saved.url == f"/experiments/{experiment.pk}?only=all&page=2#result-{result}"


def test_a_review_of_the_api_is_saved_on_the_page(client, editor):
    experiment = ended(make_dataset("First", owner_id="support"), [0.5])
    result = experiment.results.get()
    path = f"/experiments/{experiment.pk}/results/{result.pk}/review"
    fields = {
        "review": "reviewed",
        "tags": ", ".join(f"{number}" * 100 for number in range(50)),
        "comment": "x" * 10_000,
    }

    client.post(path, fields)

    result.refresh_from_db()
    assert (len(result.tags), len(result.comment)) == (50, 10_000)


def test_a_review_that_another_person_saved_meanwhile_is_shown_before_it_is_replaced(client, editor):
    experiment = ended(make_dataset("First", owner_id="support"), [0.5])
    result = experiment.results.get()
    path = f"/experiments/{experiment.pk}/results/{result.pk}/review"
    seen = re.search(r'name="seen" value="(\w+)"', text(client.get(f"/experiments/{experiment.pk}")))[1]
    theirs, mine = [{"review": "reviewed", "comment": words, "seen": seen} for words in ("Theirs.", "Mine.")]
    client.post(path, theirs)

    refused = text(client.post(path, mine, headers={"HX-Request": "true"}), 422)
    result.refresh_from_db()
    comment = result.comment
    mine["seen"] = re.search(r'name="seen" value="(\w+)"', refused)[1]
    client.post(path, mine)

    result.refresh_from_db()
    assert (comment, result.comment) == ("Theirs.", "Mine.")
    assert "somebody else has reviewed this answer" in refused
    assert '<p dir="auto">Theirs.</p>' in refused
    assert "Mine.</textarea>" in refused


def test_an_invalid_review_shows_its_error_beside_what_was_entered(client, editor):
    experiment = ended(make_dataset("First", owner_id="support"), [0.5])
    result = experiment.results.get()
    fields = {"tags": "x" * 257, "comment": "Too short."}

    response = client.post(
        f"/experiments/{experiment.pk}/results/{result.pk}/review", fields, headers={"HX-Request": "true"}
    )

    page = text(response, 422)
    assert "tags of at most 256 characters." in page
    assert "Too short.</textarea>" in page
    result.refresh_from_db()
    assert result.comment == ""


@pytest.mark.usefixtures("idle_engine")
def test_failed_items_run_again(client, editor, agent):
    dataset = make_dataset("One", {"input": "Two", "scorer_keys": ["missing"]}, owner_id="support")
    experiment = new_experiment(dataset, editor, agent)
    work()
    path = f"/experiments/{experiment.pk}"
    assert "Retry failed items" in text(client.get(path))
    ItemVersion.objects.update(scorer_keys=[])

    client.post(f"{path}/retry")
    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.succeeded_count, experiment.failed_count) == ("completed", 2, 0)
    assert ExperimentResult.objects.count() == 2


@pytest.mark.usefixtures("idle_engine")
def test_the_rest_of_a_cancelled_experiment_runs_later(client, editor, agent):
    experiment = new_experiment(make_dataset("One", "Two", owner_id="support"), editor, agent)
    client.post(f"/experiments/{experiment.pk}/cancel")
    work()
    experiment.refresh_from_db()
    assert (experiment.status, experiment.done_count) == ("cancelled", 0)

    client.post(f"/experiments/{experiment.pk}/retry")
    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.succeeded_count) == ("completed", 2)


def test_an_invalid_review_without_scripts_keeps_what_was_entered(client, editor):
    experiment = ended(make_dataset("First", owner_id="support"), [0.5])
    result = experiment.results.get()
    path = f"/experiments/{experiment.pk}/results/{result.pk}/review"
    fields = {"review": "reviewed", "tags": "x" * 257, "comment": "Mine.", "query": "only=failed"}

    refused = client.post(path, fields)

    page = refused.content.decode()
    assert refused.status_code == 422
    assert "tags of at most 256 characters." in page
    assert "Mine.</textarea>" in page
    assert f'href="/experiments/{experiment.pk}?only=failed"' in page
    saved = client.post(path, fields | {"tags": "tone"})
    assert saved.headers["Location"] == f"/experiments/{experiment.pk}?only=failed#result-{result.pk}"


def test_only_those_who_may_open_a_run_get_its_link(client, editor):
    experiment = ended(make_dataset("First", owner_id="support"), [0.5])
    run = RunFactory(owner_id="support", requested_by=editor)
    experiment.results.update(run=run)
    path, link = f"/experiments/{experiment.pk}", f'href="/runs/{run.pk}"'
    review = f"{path}/results/{experiment.results.get().pk}/review"
    script = {"HX-Request": "true"}

    assert link in text(client.get(path))
    assert link in text(client.post(review, {"tags": "x" * 257}), 422)
    assert link in text(client.post(review, {"tags": "tone"}, headers=script))
    client.force_login(member("editor", "support", username="another"))
    assert link not in text(client.get(path))
    assert link not in text(client.post(review, {"tags": "x" * 257}, headers=script), 422)
    client.force_login(member("publisher", "support", username="publisher"))
    assert link in text(client.get(path))


def test_only_editors_who_see_the_experiment_review_and_retry(client, editor):
    mine = ended(make_dataset("One", owner_id="support"), [1.0])
    secret = ended(make_dataset("One", pk="secret", owner_id="elsewhere"), [1.0])
    routes = [f"/results/{secret.results.get().pk}/review", "/retry", "/cancel"]

    assert [client.post(f"/experiments/{secret.pk}{route}").status_code for route in routes] == [404] * 3
    assert client.post(f"/experiments/{mine.pk}/results/{secret.results.get().pk}/review").status_code == 404
    client.force_login(member("viewer", "support"))
    routes = [f"/results/{mine.results.get().pk}/review", "/retry", "/cancel"]
    assert [client.post(f"/experiments/{mine.pk}{route}").status_code for route in routes] == [403] * 3
    page = text(client.get(f"/experiments/{mine.pk}"))
    assert "<summary" not in page.split('id="experiment"')[1]
    assert 'data-label="Scores"' in page
    assert 'data-label="Review"' not in page  # on phones it would be a label without a value


def test_the_error_of_a_scorer_can_be_read_whole(client, editor):
    error = f"The model said: {'too much, ' * 20}and stopped."
    score = {"scorerId": "exact", "scorerName": "Exact match", "score": None, "error": error}
    experiment = ended(make_dataset("First", owner_id="support"), [0.5])
    experiment.results.update(scores=[score])

    page = text(client.get(f"/experiments/{experiment.pk}"))

    assert f'<summary>Whole error</summary><span dir="auto">{error}</span>' in page


@pytest.mark.usefixtures("idle_engine")
def test_answers_whose_scorer_failed_are_listed_and_scored_again(client, editor, agent):
    dataset = make_dataset("First question", "Second question", owner_id="support", scorer_keys=["exact"])
    experiment = new_experiment(dataset, editor, agent)
    work()
    failed = {"scorerId": "exact", "scorerName": "Exact match", "score": None, "error": "No connection."}
    experiment.results.filter(item_version__input="First question").update(scores=[failed])
    Experiment.objects.update(summary=summarize_experiment(experiment))

    page = text(client.get(f"/experiments/{experiment.pk}?only=failed"))
    client.post(f"/experiments/{experiment.pk}/retry")
    work()

    assert "No connection." in page
    assert "Second question" not in page
    assert "1 score failed" in page
    assert "Retry failed scores" in page
    assert "1 score failed" not in text(client.get(f"/experiments/{experiment.pk}"))


def test_pages_name_the_agent_of_an_experiment_and_not_its_id(client, editor, agent):
    dataset = make_dataset("One", owner_id="support")
    agent.edit({"name": "Refund officer"})
    first, second = ended(dataset, [1.0]), ended(dataset, [0.5])
    Experiment.objects.update(target_type="agent", target_id="clerk")
    paths = ["/experiments", f"/experiments/{first.pk}", "/datasets/support", "/agents/clerk/quality"]
    paths.append(f"/experiments/compare?a={first.pk}&b={second.pk}")

    pages = {path: text(client.get(path)) for path in paths}

    assert [path for path, page in pages.items() if "Refund officer v1" not in page] == []
    assert [path for path, page in pages.items() if "clerk v1" in page] == []


def test_a_title_has_the_id_of_an_agent_that_the_user_may_not_see(client, editor):
    AgentFactory(id="hidden", owner_id="elsewhere", name="Secret", model=DEMO, instructions="")
    ended(make_dataset("One", owner_id="support"), [1.0])
    Experiment.objects.update(target_type="agent", target_id="hidden")

    page = text(client.get("/experiments"))

    assert "hidden v1" in page
    assert "Secret" not in page


def test_of_many_agents_the_last_changed_and_the_named_ones_are_offered(client, editor, monkeypatch):
    monkeypatch.setattr(start_experiment, "MAX_AGENT_CHOICES", 2)
    for key in ("a-old", "b-old", "c-for", "d-new", "e-new"):
        AgentFactory(id=key, name="\u202ewen" if key == "e-new" else key, owner_id="support")
    make_dataset("Hello", owner_id="support", target_type="agent", target_ids=["c-for"])

    page = client.get(f"{START}?target=agent:b-old")

    (offered,) = [choices for label, choices in page.context["form"].fields["target"].choices if label == "Agents"]
    assert [key for key, _ in offered] == ["agent:b-old", "agent:c-for", "agent:d-new", "agent:e-new"]
    assert offered[-1][1] == "wen (e-new)"  # the ID is not turned with the name


def test_large_numbers_have_one_format_on_all_pages(client, editor):
    dataset = make_dataset("First", owner_id="support")
    experiment = ended(dataset, [0.5])
    Dataset.objects.update(item_count=2000)
    figures = {**summarize_experiment(experiment)["scorers"]["exact"], "count": 2000, "errors": 1500, "unscored": 1500}
    counts = {"total_items": 2000, "succeeded_count": 500, "failed_count": 1500}
    Experiment.objects.update(**counts, summary={"scorers": {"exact": figures}})

    paths = ["/datasets", "/datasets/support", f"/experiments/{experiment.pk}", "/experiments"]
    pages = {path: text(client.get(path)) for path in paths}

    assert [path for path, page in pages.items() if "2,000" not in page] == []
    visible = {path: re.sub(r"<[^>]+>", "", page) for path, page in pages.items()}
    assert [path for path, page in visible.items() if re.search(r"\b(2000|1500)\b", page)] == []


def test_experiments_are_sorted_by_score_or_failed_items(client, editor, django_assert_num_queries):
    dataset = make_dataset("First", owner_id="support")
    means = {"low": 0.5, "high": 0.9, "none": None, "other": None}
    for number, (name, mean) in enumerate(means.items()):
        figures = {"name": "Exact match", "count": 1, "mean": mean}
        summary = {"scorers": {"exact__7": figures} if name != "other" else {}}
        row = ended(dataset, [0.5])
        Experiment.objects.filter(pk=row.pk).update(name=name, summary=summary, failed_count=number % 3)

    def listed(sort):
        page = client.get("/experiments", {"sort": sort})
        return [row.name for row in page.context["page"]], page.context["sorted_by"].label

    assert listed("-score.exact__7") == (["high", "low", "other", "none"], "Score: Exact match")
    assert listed("created") == ([*means], "Oldest")
    assert listed("-failed") == (["none", "high", "other", "low"], "Most failed items")
    assert listed("nonsense") == ([*means][::-1], "Newest")
    assert listed("-score.gone")[1] == "Score: gone"
    with django_assert_num_queries(5):
        client.get("/experiments?sort=-score.exact__7")


def test_a_version_that_is_missing_is_named_at_its_field(client, editor, agent):
    make_dataset("One", owner_id="support")

    answer = client.post(START, {"target": "agent:clerk", "version": "99"})

    assert [*answer.context["form"].errors] == ["version"]


def test_the_choice_of_a_comparison_stands_above_the_results(client, editor):
    dataset = make_dataset("One", owner_id="support")
    experiment, _ = ended(dataset, [0.5]), ended(dataset, [0.5])

    page = text(client.get(f"/experiments/{experiment.pk}"))

    assert page.index("Compare with</label>") < page.index("Results</caption>")


@pytest.mark.parametrize(
    ("scores", "interval"),
    [([0.0, 1.0], "0.00 to 1.00"), ([1.0, 3.0], "-10.71 to 14.71"), ([-1.0, 1.0], "-12.71 to 12.71"), ([0.5], "")],
)
def test_the_interval_of_a_mean_ends_where_scores_do(client, editor, scores, interval):
    experiment = ended(make_dataset(*["One", "Two"][: len(scores)], owner_id="support"), scores)
    Experiment.objects.update(summary=summarize_experiment(experiment))

    page = text(client.get(f"/experiments/{experiment.pk}"))
    cell = page.partition('<td data-label="95 % interval">')[2].partition("</td>")[0]

    assert cell.partition('<span class="row-note">')[2].partition("</span>")[0] == interval
    assert '<circle class="score-point"' in cell


def test_scores_are_plotted_between_0_and_1_or_as_far_as_they_reach():
    (usual,) = build_score_plots([{"mean": 0.5, "low": 0.25, "high": 0.75}])
    wide, unscored = build_score_plots([{"mean": 3.0}, {"mean": None}])

    assert (usual.zero, usual.low, usual.point, usual.high, usual.one) == (6, 53, 100, 147, 194)
    assert (wide.one, wide.point, wide.low, unscored.point) == (68.7, 194, None, None)
