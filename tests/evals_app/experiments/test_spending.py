"""The tokens and the cost of scorers and sub-agents in experiments: in results, summaries, budgets and estimates."""

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from agentcms.errors import Conflict
from agents_app.registry import Entry, Kind, registry
from evals_app.datasets.purging import purge_item
from evals_app.experiments.direct.calls import insert_call, perform_call
from evals_app.experiments.direct.targets import find_callee
from evals_app.experiments.ending import finish_experiment, set_end
from evals_app.experiments.estimate import estimate_cost
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.experiments.spending import Spent, exceeded_budget
from evals_app.experiments.stopping import end_early
from evals_app.models import Experiment, ExperimentResult
from evals_app.scorers.changes import create_scorer
from evals_app.scorers.results import answer_of_run
from runs_app.engine.run_ends import LOST_MESSAGE
from runs_app.models import AgentRun
from runs_app.providers import cached_providers
from runs_app.providers.prices import list_price
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO, LONG, SLOW
from tests.served import wait_until

PRICE = 0.0125  # dollars: 1,000 tokens in and 1,000 out of gpt-4o
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}, "claims": {"type": "array"}}}


@pytest.fixture
def judge(idle_engine):
    """Register a judge whose requests cost the same, and return what it answers."""
    answer = {"score": 0.5, "claims": ["Xylophone7391"]}

    def respond(messages, info):
        usage = RequestUsage(input_tokens=1000, output_tokens=1000)
        parts = [ToolCallPart(info.output_tools[0].name, answer)]
        return ModelResponse(parts, usage=usage, model_name="gpt-4o", provider_name="openai")

    make_model = lambda name, choice: FunctionModel(respond, model_name="gpt-4o")  # noqa: E731
    registry.add(Entry(Kind.MODEL_PROVIDER, "paid", "Paid", target=make_model))
    cached_providers.invalidate()
    snapshot = {
        "name": "Paid",
        "type": "llm-judge",
        "model": {"provider": "paid", "name": "gpt-4o"},
        "instructions": "Be strict.",
        "outputSchema": SCHEMA,
    }
    create_scorer(snapshot, owner_id="", author="ann", id="paid-judge")
    return answer


@pytest.fixture
def agent(idle_engine):
    return AgentFactory(model=DEMO, instructions="")


def test_the_cost_of_judges_is_in_the_result_and_the_summary(judge, agent):
    experiment = run_experiment(make_dataset("One", "Two"), member("editor"), agent, scorerIds=["paid-judge"])

    first, second = experiment.results.all()
    runs = first.tokens + second.tokens
    assert [float(row.scores_cost) for row in (first, second)] == pytest.approx([PRICE, PRICE])
    assert (first.scores_tokens, second.scores_tokens) == (2000, 2000)
    summary = experiment.summary
    assert (summary["cost"], summary["scorersCost"]) == pytest.approx((2 * PRICE, 2 * PRICE))
    assert (summary["tokens"], summary["scorersTokens"]) == (runs + 4000, 4000)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"maxCost": 0.02}, "The budget of $0.02 is spent."),
        ({"maxTokens": 3000}, "The budget of 3,000 tokens is spent."),
    ],
)
def test_judges_spend_the_budget(judge, agent, budget, reason):
    dataset = make_dataset(*map(str, range(6)), scorer_keys=["paid-judge"])

    experiment = run_experiment(dataset, member("editor"), agent, budget=budget, maxConcurrency=1)

    assert (experiment.status, experiment.stop_reason, experiment.done_count) == ("cancelled", reason, 2)


def test_a_judge_that_fails_after_its_request_counts_too(judge, agent):
    judge["score"] = 7

    experiment = run_experiment(make_dataset("One"), member("editor"), agent, scorerIds=["paid-judge"])

    (entry,) = experiment.results.get().scores
    assert (entry["score"], entry["usage"]["totalTokens"]) == (None, 2000)
    assert experiment.summary["scorersCost"] == pytest.approx(PRICE)


def test_a_result_keeps_the_details_and_the_usage_of_a_score(judge, agent):
    experiment = run_experiment(make_dataset("One"), member("editor"), agent, scorerIds=["paid-judge"])

    (entry,) = experiment.results.get().scores
    assert entry["details"] == {"score": 0.5, "claims": ["Xylophone7391"]}
    assert entry["usage"] == {"inputTokens": 1000, "outputTokens": 1000, "totalTokens": 2000}
    assert entry["cost"] == pytest.approx(PRICE)


def test_a_purge_removes_the_details_and_leaves_the_numbers(judge, agent):
    editor = member("editor")
    dataset = make_dataset("One")
    experiment = run_experiment(dataset, editor, agent, scorerIds=["paid-judge"])

    purge_item(dataset, experiment.results.get().item, editor)

    result = ExperimentResult.objects.get()
    assert "Xylophone7391" not in str(result.scores)
    assert (result.scores[0]["score"], result.scores[0]["usage"]["totalTokens"]) == (0.5, 2000)


def test_the_tokens_of_sub_agents_count(agent):
    AgentFactory(id="child", model=DEMO, instructions="")
    parent = AgentFactory(model=DEMO, instructions="", agents=["child"])

    experiment = run_experiment(make_dataset('Use agent-child {"prompt": "Hello"}'), member("editor"), parent)

    result = experiment.results.get()
    usages = [run.usage["totalTokens"] for run in AgentRun.objects.filter(experiment_id=experiment.pk)]
    assert (len(usages), result.tokens) == (2, sum(usages))


def test_scorers_see_the_tokens_and_the_cost_of_sub_agents_which_results_know_already(agent):
    run_experiment(make_dataset("One", "Two"), member("editor"), agent)
    parent, child = ExperimentResult.objects.order_by("pk")
    AgentRun.objects.filter(pk=parent.run_id).update(cost=0.25)
    AgentRun.objects.filter(pk=child.run_id).update(cost=0.5, root_id=parent.run_id)
    run = AgentRun.objects.get(pk=parent.run_id)

    answer = answer_of_run(run)
    with CaptureQueriesContext(connection) as queries:
        known = answer_of_run(run, Spent(answer.tokens, Decimal("0.75")))

    assert (answer.cost, answer.tokens) == (0.75, parent.tokens + child.tokens)
    assert (known.cost, known.tokens) == (0.75, answer.tokens)
    assert not [query for query in queries.captured_queries if '"root_id" = ' in query["sql"]]


def test_the_estimate_has_the_cost_of_runs_sub_agents_and_judges(judge, agent):
    dataset = make_dataset("One", "Two")
    run_experiment(dataset, member("editor"), agent, scorerIds=["paid-judge"])
    run = AgentRun.objects.order_by("pk").first()
    AgentRun.objects.filter(pk=run.pk).update(cost=0.25)
    AgentRun.objects.exclude(pk=run.pk).update(cost=0.5, root_id=run.pk, agent_id=None)

    estimate = estimate_cost(agent.pk, dataset, repeats=3, scorers=["paid-judge", "exact"])

    assert (estimate.scorer_cost, estimate.unknown_scorers) == (pytest.approx(6 * PRICE), ())
    assert (estimate.cost, estimate.run_count) == (pytest.approx(6 * (0.75 + PRICE)), 1)


def test_the_estimate_names_judges_without_a_known_cost(judge, agent):
    dataset = make_dataset("One")

    estimate = estimate_cost(agent.pk, dataset, scorers=["paid-judge", "exact"])

    assert (estimate.cost, estimate.scorer_cost, estimate.unknown_scorers) == (None, 0, ("Paid",))


def test_the_page_that_starts_an_experiment_says_what_judges_cost(judge, agent, client):
    editor = member("editor")
    dataset = make_dataset("One")
    client.force_login(editor)
    address = f"/datasets/{dataset.pk}/experiments/start"

    before = client.get(address, {"target": f"agent:{agent.pk}", "scorers": ["paid-judge"]}).content.decode()
    run_experiment(dataset, editor, agent, scorerIds=["paid-judge"])
    AgentRun.objects.update(cost=0.25)
    after = client.get(address, {"target": f"agent:{agent.pk}", "scorers": ["paid-judge"]}).content.decode()
    without = client.get(address, {"target": f"agent:{agent.pk}", "scorers": ["exact"]}).content.decode()

    assert "The cost of Paid comes on top." in before
    assert "1 run, about $0.2625, from the last 1 run of this agent. Of that, the scorers cost about $0.0125." in after
    assert "1 run, about $0.2500, from the last 1 run of this agent." in without


def test_the_page_of_an_experiment_shows_the_details_of_a_score(judge, agent, client):
    editor = member("editor")
    experiment = run_experiment(make_dataset("One"), editor, agent, scorerIds=["paid-judge"])
    client.force_login(editor)

    page = client.get(f"/experiments/{experiment.pk}").content.decode()

    details = page.partition("<summary>Details</summary>")[2].partition("</details>")[0]
    assert "Xylophone7391" in details
    assert "scores $0.0125" in page


# --- Attempts without a result


def lose_the_first_run(experiment, **figures):
    """Start the first item, and let its process die."""
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    item_loop.start(0)
    wait_until(lambda: not AgentRun.objects.unfinished().exists(), 20, "the end of the run")
    AgentRun.objects.update(status="failed", error=LOST_MESSAGE, **figures)


def test_the_cost_of_a_lost_run_counts_in_figures_and_budget(agent):
    dataset = make_dataset("One", "Two")
    experiment = new_experiment(dataset, member("editor"), agent, maxConcurrency=1, budget={"maxCost": 0.5})
    lose_the_first_run(experiment, cost=0.75, usage={"totalTokens": 1000})

    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.stop_reason) == ("cancelled", "The budget of $0.5 is spent.")
    result = experiment.results.get()
    assert result.retry_count == 1
    assert (experiment.summary["cost"], experiment.summary["earlierCost"]) == pytest.approx((0.75, 0.75))
    assert experiment.summary["tokens"] == 1000 + (result.tokens or 0)


def test_the_finished_steps_of_a_lost_run_count(agent):
    experiment = new_experiment(make_dataset("One"), member("editor"), agent)
    lose_the_first_run(experiment)
    run = AgentRun.objects.get()
    spent = run.usage["totalTokens"]
    AgentRun.objects.update(usage={}, cost=None)  # as a process leaves it that is killed

    work()

    experiment.refresh_from_db()
    assert spent > 0
    assert experiment.summary["earlierTokens"] == spent
    assert experiment.summary["tokens"] == spent + experiment.results.get().tokens


def test_the_price_of_steps_is_that_of_their_model():
    usage = {"inputTokens": 1000, "outputTokens": 1000, "totalTokens": 2000}

    assert (float(list_price("gpt-4o", usage)), list_price("unknown", usage)) == (PRICE, None)


def failed_experiment(agent, editor, **options):
    """Return an experiment whose only item failed after it had cost a quarter of a dollar."""
    experiment = run_experiment(make_dataset("One"), editor, agent, **options)
    experiment.results.update(error={"message": "No"}, cost="0.25", tokens=100, scores_cost="0.25", scores_tokens=100)
    return experiment


def test_the_cost_of_a_retried_result_counts(agent):
    editor = member("editor")
    experiment = failed_experiment(agent, editor)

    retry_failed(experiment, editor)
    work()

    experiment.refresh_from_db()
    result = experiment.results.get()
    assert (result.error, result.cost) == (None, None)
    assert (experiment.summary["cost"], experiment.summary["tokens"]) == pytest.approx((0.5, 200 + result.tokens))


def test_a_spent_budget_is_not_retried(agent):
    editor = member("editor")
    experiment = failed_experiment(agent, editor, budget={"maxCost": 0.4})

    with pytest.raises(Conflict) as raised:
        retry_failed(experiment, editor)

    assert raised.value.error == "The budget of $0.4 is spent. Start another experiment with a larger budget."
    experiment.refresh_from_db()
    assert (experiment.status, experiment.results.get().error) == ("completed", {"message": "No"})


def test_a_run_that_an_early_end_stops_counts(idle_engine):
    AgentFactory(id="slow", model=SLOW, instructions="")
    parent = AgentFactory(model=DEMO, instructions="", agents=["slow"])
    dataset = make_dataset(f'Use agent-slow {{"prompt": "{LONG}"}}')
    experiment = new_experiment(dataset, member("editor"), parent)
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    item_loop.step()
    wait_until(lambda: AgentRun.objects.filter(parent__isnull=False, status="running").exists(), 20, "the sub-agent")

    end_early(experiment, Experiment.Status.CANCELLED, "Cancelled.")

    result, run = experiment.results.get(), AgentRun.objects.get(parent=None)
    assert result.error["code"] == "stopped"
    assert (result.tokens or 0) >= run.usage["totalTokens"] > 0
    assert experiment.summary["tokens"] == result.tokens


def test_a_call_whose_result_comes_too_late_counts(judge, agent):
    editor = member("editor")
    dataset = make_dataset({"input": {"output": "Answer"}})
    experiment = new_experiment(dataset, editor, None, targetType="scorer", targetId="paid-judge")
    callee = find_callee("scorer", "paid-judge", "")
    result = insert_call(experiment, dataset.item_versions.select_related("item").get(), 0)
    end_early(experiment, Experiment.Status.CANCELLED, "Cancelled.")

    assert not perform_call(result, callee)

    stored = Experiment.objects.get()
    assert stored.results.get().error["code"] == "stopped"
    assert (stored.summary["cost"], stored.summary["tokens"]) == pytest.approx((PRICE, 2000))


def test_a_judge_that_is_paid_while_its_experiment_ends_counts(judge, agent):
    item_loop = ItemLoop(new_experiment(make_dataset("One"), member("editor"), agent, scorerIds=["paid-judge"]), None)
    item_loop.begin()
    item_loop.step()
    wait_until(lambda: item_loop.collect() == 0 and item_loop.scoring.open, 20, "an answer that is judged")
    item_loop.scoring.pause(10)

    finish_experiment(Experiment.objects.get(), Experiment.Status.CANCELLED, "Cancelled.", stops_open=True)
    assert item_loop.scoring.store_finished() == 0

    summary = Experiment.objects.get().summary
    run = AgentRun.objects.get()
    assert summary["earlierCost"] == pytest.approx(PRICE)
    assert (summary["earlierTokens"], summary["tokens"]) == (2000, 2000 + run.usage["totalTokens"])


def test_the_end_of_an_experiment_reads_its_earlier_spending_once(agent):
    experiment = new_experiment(make_dataset("One"), member("editor"), agent)

    with CaptureQueriesContext(connection) as captured:
        set_end(experiment, Experiment.Status.COMPLETED, "")

    reads = [
        query["sql"] for query in captured if query["sql"].startswith("SELECT") and "earlier_cost" in query["sql"]
    ]
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("spent", "reason"),
    [(Spent(4, Decimal("0.5")), ""), (Spent(4, Decimal("0.6")), "The budget of $1 is spent.")],
)
def test_a_budget_may_be_spent_to_the_last_cent(spent, reason):
    experiment = Experiment(budget={"maxCost": 1, "maxTokens": 10}, summary={"cost": 0.5, "tokens": 6})

    assert exceeded_budget(experiment, spent) == reason


def test_a_budget_of_tokens_may_be_spent_to_the_last_one():
    experiment = Experiment(budget={"maxTokens": 10}, summary={"tokens": 6})

    assert exceeded_budget(experiment, Spent(4)) == ""
    assert exceeded_budget(experiment, Spent(5)) == "The budget of 10 tokens is spent."
