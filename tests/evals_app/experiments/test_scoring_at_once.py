"""Answers that are scored at once, while other items run: their number, budgets, early ends and outages."""

import asyncio
import threading
import time

import pytest
from django.db import OperationalError
from pydantic_evals.evaluators import Evaluator

from agents_app.registry import Entry, Kind, registry
from evals_app.datasets.purging import REDACTED, purge_item
from evals_app.experiments import jobs, scoring, stopping
from evals_app.experiments.ending import finish_experiment
from evals_app.experiments.jobs import EXPERIMENT_JOB
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.running import item_loop as item_loop_module
from evals_app.experiments.running.foreground import create_command_job, run_to_end
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.experiments.stopping import end_early, request_cancel
from evals_app.models import Experiment, ExperimentResult
from evals_app.scorers.live import LiveEvaluator
from jobs_app import runner
from jobs_app.models import Job
from runs_app.models import AgentRun
from runs_app.scoring import MAX_SCORE_REASON_LENGTH
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment, work
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")
ITEMS = [str(number) for number in range(6)]
Status = Experiment.Status


@pytest.fixture
def scorer():
    """Return a function that registers a function as the scorer `own`."""
    yield lambda target: registry.add(Entry(Kind.SCORER, "own", "Own", target=target))
    registry.remove(Kind.SCORER, "own")


class Gate:
    """A scorer that waits until it is opened, and counts its answers."""

    def __init__(self):
        self.answers = []
        self.opened = threading.Event()

    def __call__(self, answer):
        self.answers.append(answer)
        assert self.opened.wait(30)
        return 1.0


@pytest.fixture
def gate(scorer):
    gate = Gate()
    scorer(gate)
    yield gate
    gate.opened.set()


def step_until(item_loop, condition, text="the steps"):
    def step_and_look():
        item_loop.step()
        return condition()

    wait_until(step_and_look, 20, text)


def begin(dataset, editor, agent, **options):
    item_loop = ItemLoop(new_experiment(dataset, editor, agent, **{"scorerIds": ["own"], **options}), None)
    item_loop.begin()
    return item_loop


def test_answers_are_scored_at_once(editor, agent, scorer):
    meeting = threading.Barrier(3)

    def meet(answer):
        meeting.wait(20)  # breaks unless three answers are scored now
        return 1.0

    scorer(meet)
    experiment = run_experiment(make_dataset(*ITEMS), editor, agent, scorerIds=["own"], maxConcurrency=3)

    assert experiment.summary["scorers"]["own"]["count"] == len(ITEMS)


def test_other_items_run_while_answers_are_scored(editor, agent, gate):
    item_loop = begin(make_dataset(*ITEMS), editor, agent, maxConcurrency=2)

    step_until(item_loop, lambda: AgentRun.objects.filter(status="succeeded").count() == 4, "four answers")
    for _ in range(5):
        item_loop.step()

    assert (len(gate.answers), AgentRun.objects.count()) == (2, 4)  # no more than twice as many are open
    gate.opened.set()
    item_loop.work(20)
    item_loop.experiment.refresh_from_db()
    assert (item_loop.experiment.status, item_loop.experiment.succeeded_count, len(gate.answers)) == (
        "completed",
        6,
        6,
    )


@pytest.mark.parametrize("budget", [{"maxCost": 100}, {"maxTokens": 10**9}])
def test_an_experiment_with_a_budget_does_not_run_ahead_of_its_judges(editor, agent, gate, budget):
    item_loop = begin(make_dataset(*ITEMS), editor, agent, maxConcurrency=2, budget=budget)

    step_until(item_loop, lambda: len(gate.answers) == 2, "two answers")
    for _ in range(5):
        item_loop.step()

    assert AgentRun.objects.count() == 2
    gate.opened.set()
    item_loop.work(20)
    assert item_loop.experiment.status == "completed"


def test_what_a_run_has_spent_counts_while_its_answer_is_scored(editor, agent, gate):
    item_loop = begin(make_dataset(*ITEMS), editor, agent, maxConcurrency=2, budget={"maxTokens": 1})
    item_loop.experiment.concurrency = 1
    step_until(item_loop, lambda: len(gate.answers) == 1, "an answer")

    item_loop.experiment.concurrency = 2
    item_loop.step()

    assert (AgentRun.objects.count(), item_loop.experiment.status) == (1, "running")
    gate.opened.set()
    item_loop.work(20)
    assert (item_loop.experiment.status, item_loop.experiment.done_count) == ("cancelled", 1)


def test_the_end_of_a_slice_waits_for_the_answers_that_are_scored(editor, agent, scorer, monkeypatch):
    monkeypatch.setattr(jobs, "SLICE", 0.2)
    answers = []

    def slow(answer):
        answers.append(answer)
        time.sleep(0.5)
        return 1.0

    scorer(slow)
    experiment = run_experiment(make_dataset(*ITEMS), editor, agent, scorerIds=["own"], maxConcurrency=2)

    assert (experiment.status, experiment.succeeded_count) == ("completed", len(ITEMS))
    assert len(answers) == len({*answers}) == len(ITEMS)
    assert Job.objects.filter(kind=EXPERIMENT_JOB).count() > 1


def test_an_outage_while_an_answer_is_scored_is_tried_again(editor, agent, scorer, monkeypatch):
    scorer(lambda answer: 1.0)
    experiment = new_experiment(make_dataset("One"), editor, agent, scorerIds=["own"])
    job = Job.objects.get(kind=EXPERIMENT_JOB)

    def fail(*arguments, **options):
        raise OperationalError("gone")

    with monkeypatch.context() as outage:
        outage.setattr(scoring, "answer_of_run", fail)
        interrupted = runner.run_claimed(str(job.pk))
    assert (interrupted.state, ExperimentResult.objects.get().state) == (Job.State.RUNNING, "running")
    Job.objects.filter(pk=job.pk).update(lease_until="2020-01-01T00:00Z")
    runner.run_claimed(str(job.pk))
    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.summary["scorers"]["own"]["count"]) == ("completed", 1)


# --- Early ends


def test_an_answer_that_is_scored_when_its_experiment_ends_is_counted_once(editor, agent, gate):
    item_loop = begin(make_dataset("One"), editor, agent)
    step_until(item_loop, lambda: len(gate.answers) == 1, "an answer")

    finish_experiment(Experiment.objects.get(), Status.CANCELLED, "Cancelled.", stops_open=True)
    summary = Experiment.objects.get().summary
    gate.opened.set()
    item_loop.scoring.pause(10)

    assert item_loop.scoring.store_finished() == 0
    assert ExperimentResult.objects.get().error["code"] == "stopped"
    assert Experiment.objects.get().summary == summary


def test_an_early_end_goes_on_with_the_answers_that_are_scored(editor, agent, gate):
    item_loop = begin(make_dataset("One"), editor, agent)
    step_until(item_loop, lambda: len(gate.answers) == 1, "an answer")
    threading.Timer(0.3, gate.opened.set).start()

    end_early(item_loop.experiment, Status.CANCELLED, "Cancelled.", item_loop.scoring)

    assert (len(gate.answers), ExperimentResult.objects.get().score_of("own")) == (1, 1.0)


def test_an_interruption_waits_for_no_scorer_that_hangs(editor, agent, gate, monkeypatch):
    monkeypatch.setattr(stopping, "STOP_SECONDS", 0.5)
    step = ItemLoop.step

    def step_and_interrupt(item_loop, **options):
        if gate.answers:
            raise KeyboardInterrupt
        return step(item_loop, **options)

    monkeypatch.setattr(ItemLoop, "step", step_and_interrupt)
    experiment = new_experiment(make_dataset("One"), editor, agent, scorerIds=["own"])
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_to_end(experiment, create_command_job(experiment))

    assert time.monotonic() - started < 20  # the scorer waits for 30 seconds
    assert (experiment.status, experiment.results.get().error["code"]) == ("cancelled", "stopped")
    assert len(gate.answers) == 1


def test_a_scorer_that_never_answers_fails_and_its_answer_is_scored_again(editor, agent, gate, settings):
    settings.SCORER_TIMEOUT = 1
    experiment = run_experiment(make_dataset("One", "Two"), editor, agent, scorerIds=["own", "exact"])

    errors = {result.scores[0]["error"] for result in experiment.results.all()}
    assert (experiment.status, errors) == ("completed", {"The scorer gave no score within 1 second."})
    experiment.results.filter(item_version__input="One").update(scores_tokens=7)

    settings.SCORER_TIMEOUT = 30
    gate.opened.set()
    assert retry_failed(experiment, editor) == 2
    work()

    experiment.refresh_from_db()
    figures = experiment.summary["scorers"]["own"]
    assert (experiment.succeeded_count, figures["count"], figures["errors"]) == (2, 2, 0)
    assert experiment.summary["earlierTokens"] == 7
    assert AgentRun.objects.count() == 2  # no item ran again


@pytest.mark.parametrize("error", [SystemExit, BaseException, asyncio.CancelledError])
@pytest.mark.parametrize("kind", ["function", "evaluator"])
def test_a_scorer_that_tries_to_end_its_process_fails_alone(editor, agent, scorer, kind, error):
    """Such as one whose package, written in Rust, panics. Without it the experiment would never end."""

    class Saboteur(Evaluator):
        def evaluate(self, context):
            raise error

    def sabotage(answer):
        raise error

    scorer(sabotage if kind == "function" else LiveEvaluator(Saboteur()))
    experiment = run_experiment(make_dataset("One"), editor, agent, scorerIds=["own", "answer-length"])

    failed, scored = experiment.results.get().scores
    assert (experiment.status, scored["score"]) == ("completed", 1.0)
    assert failed["error"] == "RuntimeError: The function tried to end its process or its caller."


def test_details_that_cannot_be_stored_are_an_error_of_their_scorer(editor, agent, scorer):
    circle = {}
    circle["self"] = circle
    scorer(lambda answer: {"score": 0.5, "details": circle})

    experiment = run_experiment(make_dataset("One"), editor, agent, scorerIds=["own", "answer-length"])

    failed, scored = experiment.results.get().scores
    assert (experiment.status, failed["score"], scored["score"]) == ("completed", None, 1.0)
    assert failed["error"] == "The scorer returned details that cannot be stored as JSON (ValueError)."


def test_the_reason_of_a_scorer_is_stored_as_long_as_that_of_answers_in_use(editor, agent, scorer):
    scorer(lambda answer: {"score": 0.5, "reason": "x" * 100_000})

    experiment = run_experiment(make_dataset("One"), editor, agent, scorerIds=["own"])

    assert len(experiment.results.get().scores[0]["reason"]) == MAX_SCORE_REASON_LENGTH


def test_an_item_that_is_purged_while_its_answer_is_scored_ends_no_experiment(editor, agent, gate):
    dataset = make_dataset("One")
    item_loop = begin(dataset, editor, agent, maxConcurrency=1)
    step_until(item_loop, lambda: gate.answers, "the scorer")

    purge_item(dataset, dataset.items.get(), editor)
    gate.opened.set()
    item_loop.work(20)

    item_loop.experiment.refresh_from_db()
    result = item_loop.experiment.results.get()
    assert (item_loop.experiment.status, result.state, result.output, result.run) == (
        "completed",
        "done",
        REDACTED,
        None,
    )
    assert not AgentRun.objects.exists()


def test_a_cancelled_experiment_waits_seconds_for_its_scorers(editor, agent, gate, monkeypatch):
    monkeypatch.setattr(item_loop_module, "STOP_SECONDS", 0.2)
    item_loop = begin(make_dataset("One"), editor, agent)
    step_until(item_loop, lambda: gate.answers, "the scorer")

    request_cancel(item_loop.experiment)
    step_until(item_loop, lambda: item_loop.experiment.is_finished, "the end")

    assert (item_loop.experiment.status, item_loop.experiment.results.get().error["code"]) == ("cancelled", "stopped")


def test_the_waiting_job_of_a_cancelled_experiment_is_called(editor, agent, monkeypatch):
    experiment = new_experiment(make_dataset("One"), editor, agent)
    sent = []
    monkeypatch.setattr(runner, "send_job", sent.append)

    request_cancel(experiment)

    assert sent == [Job.objects.get(kind=EXPERIMENT_JOB).pk]
