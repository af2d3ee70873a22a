"""Experiments that end by an error of the application: they are failed, and may be retried."""

import pytest
from django.db import IntegrityError

from agents_app.models import Agent
from evals_app.experiments.jobs import EXPERIMENT_JOB
from evals_app.experiments.retrying import retry_failed
from evals_app.experiments.running import item_loop as item_loops
from evals_app.experiments.running.foreground import COMMAND_JOB, create_command_job, run_to_end
from evals_app.experiments.running.item_loop import ItemLoop
from evals_app.models import Experiment
from jobs_app import runner
from jobs_app.models import Job, LeaseLost
from runs_app.models import AgentRun
from tests.evals_app.experiment_runs import make_dataset, new_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO, LONG, SLOW
from tests.served import wait_until

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def editor():
    return member("editor")


def run_job():
    """Run the waiting job of an experiment, and return it."""
    job = Job.objects.get(kind=EXPERIMENT_JOB, state=Job.State.QUEUED)
    return runner.run_claimed(str(job.pk))


def begin(experiment):
    """Start the first items as a worker does."""
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    item_loop.step()
    wait_until(lambda: AgentRun.objects.filter(status="running").exists(), 20, "a running run")


def test_an_unexpected_error_fails_the_experiment_and_stops_its_runs(editor, settings):
    experiment = new_experiment(make_dataset(LONG, LONG), editor, AgentFactory(model=SLOW), maxConcurrency=1)
    begin(experiment)
    settings.EXPERIMENT_RUNS = None  # a mistake in the settings: the worker cannot count with it
    Experiment.objects.update(concurrency=2)

    job = run_job()

    experiment.refresh_from_db()
    assert (job.state, experiment.status, experiment.failed_count) == (Job.State.FAILED, "failed", 1)
    assert "unexpected error (TypeError)" in experiment.error
    assert experiment.results.get().error["code"] == "stopped"
    wait_until(lambda: not AgentRun.objects.unfinished().exists(), 20, "the end of the run")
    assert not Job.objects.filter(kind=EXPERIMENT_JOB, state=Job.State.QUEUED).exists()


def test_an_agent_that_is_deleted_while_an_item_starts_is_the_reason(editor, monkeypatch):
    """PostgreSQL refuses the run of an agent that another transaction has just deleted."""
    agent = AgentFactory(model=DEMO)
    experiment = new_experiment(make_dataset("One"), editor, agent)

    def lose_agent(item_loop, may_start=True):
        Agent.objects.filter(pk=agent.pk).delete()
        raise IntegrityError("Key (agent_id) is not present")

    monkeypatch.setattr(ItemLoop, "step", lose_agent)

    job = run_job()

    experiment.refresh_from_db()
    assert (job.state, experiment.status) == (Job.State.DONE, "failed")
    assert experiment.error == f"Target '{agent.pk}' of the experiment was not found"


def test_a_failed_experiment_is_retried(editor, settings):
    places = settings.EXPERIMENT_RUNS
    experiment = new_experiment(make_dataset("One", "Two"), editor, AgentFactory(model=DEMO, instructions=""))
    settings.EXPERIMENT_RUNS = None
    run_job()
    settings.EXPERIMENT_RUNS = places
    experiment.refresh_from_db()

    count = retry_failed(experiment, editor)
    work()

    experiment.refresh_from_db()
    assert (count, experiment.status, experiment.succeeded_count, experiment.error) == (2, "completed", 2, "")


def test_results_that_cannot_be_summarized_fail_the_experiment_too(editor):
    experiment = new_experiment(make_dataset("One", "Two"), editor, AgentFactory(model=DEMO, instructions=""))
    item_loop = ItemLoop(experiment, None)
    item_loop.begin()
    item_loop.step()
    wait_until(lambda: not AgentRun.objects.unfinished().exists(), 20, "the end of the runs")
    item_loop.collect()
    experiment.results.update(scores=[{"score": 1.0}])  # of a release that wrote another shape

    run_job()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.completed_at is not None) == ("failed", True)
    assert "unexpected error (KeyError)" in experiment.error


def test_the_loss_of_rights_stops_the_open_runs(editor):
    experiment = new_experiment(make_dataset(LONG, LONG), editor, AgentFactory(model=SLOW), maxConcurrency=1)
    begin(experiment)
    editor.memberships.all().delete()

    run_job()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.failed_count) == ("failed", 1)
    wait_until(lambda: not AgentRun.objects.unfinished().exists(), 20, "the end of the run")


def test_a_worker_ends_the_experiment_of_a_killed_command(editor, monkeypatch):
    experiment = new_experiment(make_dataset("One"), editor, AgentFactory(model=DEMO))

    def be_taken_for_dead(item_loop, may_start=True):
        Job.objects.filter(kind=COMMAND_JOB).update(lease_until="2020-01-01T00:00Z")
        runner.run_claimed(str(item_loop.job.pk))
        return True

    monkeypatch.setattr(ItemLoop, "step", be_taken_for_dead)
    monkeypatch.setattr(item_loops, "RENEWAL_INTERVAL", -1.0)

    with pytest.raises(LeaseLost):
        run_to_end(experiment, create_command_job(experiment))

    experiment.refresh_from_db()
    assert (experiment.status, "was killed" in experiment.error) == ("failed", True)
    assert Job.objects.get(kind=COMMAND_JOB).state == Job.State.DONE


def test_a_command_that_ends_leaves_no_work_to_a_worker(editor):
    experiment = new_experiment(make_dataset("One"), editor, AgentFactory(model=DEMO, instructions=""))

    run_to_end(experiment, create_command_job(experiment))

    experiment.refresh_from_db()
    assert (experiment.status, Job.objects.get(kind=COMMAND_JOB).state) == ("completed", Job.State.DONE)


def test_an_experiment_whose_job_is_stopped_fails(editor, agent):
    experiment = new_experiment(make_dataset("One", "Two"), editor, agent)
    job = Job.objects.get(kind=EXPERIMENT_JOB)

    assert runner.stop_job(job, "ada stopped the job.")

    experiment.refresh_from_db()
    assert (experiment.status, experiment.failed_count) == ("failed", 0)
    assert "was stopped or did not finish" in experiment.error + experiment.stop_reason
