"""Scoring of finished runs."""

import asyncio
from datetime import timedelta
from threading import Event
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from agents_app.registry import Entry, Kind, registry
from jobs_app import runner
from jobs_app.models import Job
from runs_app import scoring
from runs_app.engine.run_ends import run_ended
from runs_app.events.pending_runs import PendingRun, take_snapshot
from runs_app.events.writer import EventWriter
from runs_app.models import AgentRun, Score, ScorerCount
from tests.factories import AgentFactory, member
from tests.runs import DEMO, start_run, wait_for_end
from tests.runs_app.factories import RunFactory
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")


def run_and_score(agent, times=1):
    """Run an agent several times and start its scorers."""
    editor = member("editor")
    runs = [wait_for_end(start_run(agent, editor, f"Number {number}")) for number in range(times)]
    wait_until(lambda: not scoring_left(), 30)
    return runs


def scoring_left():
    from runs_app.engine.engine import get_engine

    return get_engine().run_tasks


def do_jobs():
    for job in Job.objects.filter(kind=scoring.SCORE_RUN):
        runner.run_claimed(str(job.pk))


def test_an_answer_is_scored_by_a_job():
    run = run_and_score(AgentFactory(model=DEMO, scorers={"answer-length": {}, "cites-source": {}}))[0]
    do_jobs()

    assert {score.scorer: score.score for score in run.scores.all()} == {"answer-length": 1.0, "cites-source": 0.0}
    assert Job.objects.get(kind=scoring.SCORE_RUN).state == Job.State.DONE


def test_the_job_is_stored_with_the_end_of_the_run():
    """Otherwise a process that is killed in between loses the scores."""
    stored = []

    def look(**kwargs):
        stored.extend(Job.objects.filter(kind=scoring.SCORE_RUN).values_list("parameters", flat=True))

    run_ended.connect(look)
    try:
        run = run_and_score(AgentFactory(model=DEMO, scorers={"answer-length": {}}))[0]
    finally:
        run_ended.disconnect(look)

    assert stored == [{"run": str(run.pk), "scorers": ["answer-length"]}]


def test_an_outage_after_the_end_leaves_the_job_to_beat(caplog):
    job = Job.objects.create(kind=scoring.SCORE_RUN)

    def lose_connection(execute, sql, params, many, context):
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(lose_connection):
        scoring.send_scoring_job(job.pk)

    assert f"beat sends job {job.pk} later" in caplog.text


def test_runs_end_and_others_are_scored_although_a_scorer_cannot_be_sampled(caplog):
    agent = AgentFactory(model=DEMO)
    configuration = {**agent.active_version.snapshot, "scorers": {"tone": {}}}
    wrong, *others = [RunFactory(agent=agent, configuration=configuration, open=True) for _ in range(3)]
    events = EventWriter("this-process", print, print)
    AgentRun.objects.update(holder=events.holder)
    for run in (wrong, *others):
        answer = scoring.find_scoring(run)
        if run == wrong:
            answer = answer._replace(scorers={"tone": {"sampling": {"type": "ratio", "rate": "often"}}})
        events.runs[run.pk] = PendingRun(number=100, end={"status": "succeeded", "output": "Done.", "scoring": answer})

    events.write({key: take_snapshot(pending) for key, pending in events.runs.items()})

    assert {*AgentRun.objects.values_list("status", "output")} == {("succeeded", "Done.")}
    assert f"The answer of run {wrong.pk} will not be scored." in caplog.messages
    assert {job.parameters["run"] for job in Job.objects.all()} == {str(run.pk) for run in others}


def test_a_scorer_with_a_count_scores_every_nth_run():
    agent = AgentFactory(model=DEMO, scorers={"answer-length": {"sampling": {"type": "count", "count": 2}}})

    run_and_score(agent, times=4)
    do_jobs()

    assert Score.objects.count() == 2
    assert ScorerCount.objects.get().seen == 4


@pytest.mark.parametrize(("rate", "least", "most"), [(0, 0, 0), (1, 1000, 1000), (0.25, 180, 320)])
def test_a_scorer_with_a_ratio_scores_a_stable_share_of_runs(rate, least, most):
    runs = [AgentRun(pk=uuid4()) for _ in range(1000)]
    sampling = {"type": "ratio", "rate": rate}

    chosen = [run for run in runs if scoring.is_sampled(run, "tone", sampling)]

    assert least <= len(chosen) <= most
    assert chosen == [run for run in runs if scoring.is_sampled(run, "tone", sampling)]


def test_a_failed_or_missing_scorer_stores_an_error():
    def broken(answer):
        raise ValueError("No idea.")

    registry.add(Entry(Kind.SCORER, "broken", "Broken", target=broken))
    run = run_and_score(AgentFactory(model=DEMO, scorers={"broken": {}, "nobody": {}}))[0]
    do_jobs()

    results = {score.scorer: (score.score, score.error) for score in run.scores.all()}
    assert results == {
        "broken": (None, "ValueError: No idea."),
        "nobody": (None, "No scorer is registered as 'nobody'."),
    }


@pytest.mark.parametrize(("failures", "scored"), [(1, (1.0, "")), (9, (None, "OperationalError: gone"))])
def test_an_outage_during_a_score_is_no_error_of_the_answer_but_in_the_last_attempt(failures, scored):
    outages = [OperationalError("gone")] * failures

    def reads(answer):
        if outages:
            raise outages.pop()
        return 1

    registry.add(Entry(Kind.SCORER, "reads", "Reads", target=reads))
    run = RunFactory(output="Yes.")
    job = Job.objects.create(kind=scoring.SCORE_RUN, parameters={"run": str(run.pk), "scorers": ["reads", "exact"]})
    runner.run_claimed(str(job.pk))
    after_first = set(run.scores.values_list("scorer", flat=True))
    while Job.objects.exclude(state=Job.State.DONE).update(lease_until=timezone.now() - timedelta(seconds=1)):
        assert runner.run_claimed(str(job.pk))

    assert after_first == {"exact"}
    assert run.scores.filter(scorer="reads").values_list("score", "error").get() == scored


def test_a_scorer_can_get_the_input():
    registry.add(Entry(Kind.SCORER, "echoes", "Echoes", target=lambda answer, question: float(question in answer)))

    run = run_and_score(AgentFactory(model=DEMO, scorers={"echoes": {}}))[0]
    do_jobs()

    assert run.scores.get().score == 1.0


def test_an_answer_in_use_has_no_ground_truth():
    registry.add(Entry(Kind.SCORER, "bare", "Bare", target=lambda answer, ground_truth: float(ground_truth is None)))

    run = run_and_score(AgentFactory(model=DEMO, scorers={"bare": {}}))[0]
    do_jobs()

    assert (run.scores.get().score, run.scores.get().error) == (1.0, "")


def test_failed_runs_are_not_scored():
    run_and_score(AgentFactory(model={"provider": "nobody", "name": "nothing"}, scorers={"answer-length": {}}))

    assert Job.objects.count() == 0


@pytest.mark.parametrize("odd", [{"cost": 1e9}, {"cost": float("nan")}, {"version": "two"}, {"version": 2**40}])
def test_a_number_that_no_column_holds_is_an_error_of_its_scorer_alone(odd):
    registry.add(Entry(Kind.SCORER, "odd", "Odd", target=lambda answer: {"score": 1, **odd}))
    run = RunFactory()
    job = Job.objects.create(kind=scoring.SCORE_RUN, parameters={"run": str(run.pk), "scorers": ["odd", "exact"]})

    runner.run_claimed(str(job.pk))

    job.refresh_from_db()
    assert job.state == Job.State.DONE
    errors = dict(run.scores.values_list("scorer", "error"))
    assert errors["odd"].startswith("ValueError: The ")
    assert len(errors) == 2


def test_what_a_scorer_says_is_stored_without_what_databases_refuse():
    """Models copy what they read, and PostgreSQL stores neither NUL nor NaN in these columns."""
    odd = {"score": 1, "reason": "a\0", "label": "b\0", "error": "c\ud800", "details": {"d\0": float("nan")}}
    values = [(odd, None), (float("nan"), None), ({"score": float("inf")}, None), (None, ValueError("e\0"))]
    values.append((1e200, None))  # its square is not a number of a database
    run = RunFactory()

    for number, (value, error) in enumerate(values):

        def scorer(answer, value=value, error=error):
            if error:
                raise error
            return value

        registry.add(Entry(Kind.SCORER, f"odd-{number}", "Odd", target=scorer))
        Score.objects.create(run=run, scorer=f"odd-{number}", **scoring.compute_score(run, f"odd-{number}"))

    first, *others = Score.objects.order_by("pk")
    assert (first.score, "\0" in f"{first.reason}{first.label}{first.error}{first.details}") == (1.0, False)
    assert [score.score for score in others] == [None] * 4
    assert ["Return a finite number." in score.error for score in others] == [True, True, False, False]
    assert others[-1].error == "ValueError: The score is 1e+200. Return a number from -1,000,000 to 1,000,000."


@pytest.mark.parametrize("deleted", ["before", "meanwhile"])
def test_the_answer_of_a_deleted_run_is_not_scored(deleted, monkeypatch):
    agent = AgentFactory(scorers={"answer-length": {}})
    run = RunFactory(agent=agent)
    job = Job.objects.create(
        kind=scoring.SCORE_RUN, parameters={"run": str(run.pk), "scorers": ["answer-length", "cites-source"]}
    )

    def delete_meanwhile(run, key):
        AgentRun.objects.filter(pk=run.pk).delete()
        return {"score": 1.0}

    monkeypatch.setattr(scoring, "compute_score", delete_meanwhile)
    if deleted == "before":
        run.delete()
    runner.run_claimed(str(job.pk))

    job.refresh_from_db()
    assert (job.state, job.result) == (Job.State.DONE, {"scored": 0})
    assert not Score.objects.exists()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, BaseException, asyncio.CancelledError])
def test_a_scorer_that_tries_to_end_its_process_fails_alone(error):
    """Without it the job would stay open until its lease ends, and no scorer after this one would be asked."""

    def saboteur(answer):
        raise error

    registry.add(Entry(Kind.SCORER, "a-saboteur", "Saboteur", target=saboteur))
    run = RunFactory()
    job = Job.objects.create(
        kind=scoring.SCORE_RUN, parameters={"run": str(run.pk), "scorers": ["a-saboteur", "answer-length"]}
    )

    runner.run_claimed(str(job.pk))

    job.refresh_from_db()
    failed, scored = run.scores.order_by("scorer")
    assert (job.state, scored.score) == (Job.State.DONE, 1.0)
    assert failed.error == "RuntimeError: The function tried to end its process or its caller."


def test_a_scorer_in_code_that_never_answers_fails_in_time(settings):
    settings.SCORER_TIMEOUT = 1
    opened = Event()
    registry.add(Entry(Kind.SCORER, "waits", "Waits", target=lambda answer: opened.wait(30) and 1.0))

    columns = scoring.compute_score(RunFactory(), "waits")
    opened.set()

    assert columns == {"error": "The scorer gave no score within 1 second."}
