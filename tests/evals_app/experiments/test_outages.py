"""Services that do not respond while an experiment runs: its job is tried again, and the experiment goes on."""

import pytest
from django.db import InterfaceError, OperationalError
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import ConnectionError as ValkeyError

from evals_app.experiments.jobs import EXPERIMENT_JOB
from evals_app.experiments.running import foreground
from evals_app.experiments.running.item_loop import ItemLoop
from jobs_app import runner
from jobs_app.models import Job
from tests.evals_app.experiment_runs import make_dataset, new_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO


@pytest.mark.usefixtures("idle_engine")
@pytest.mark.parametrize("error", [ValkeyError("gone"), BrokerError("gone"), ConnectionResetError("gone")], ids=type)
def test_an_outage_within_a_slice_is_tried_again(error, monkeypatch):
    agent = AgentFactory(model=DEMO, instructions="")
    experiment = new_experiment(make_dataset("One", "Two"), member("editor"), agent)
    job = Job.objects.get(kind=EXPERIMENT_JOB)

    def collect(item_loop, **options):
        raise error

    with monkeypatch.context() as outage:
        outage.setattr(ItemLoop, "collect", collect)
        interrupted = runner.run_claimed(str(job.pk))
    experiment.refresh_from_db()
    assert (interrupted.state, experiment.status) == (Job.State.RUNNING, "running")

    Job.objects.filter(pk=job.pk).update(lease_until="2020-01-01T00:00Z")
    runner.run_claimed(str(job.pk))
    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.succeeded_count) == ("completed", 2)


OUTAGES = [OperationalError("gone"), InterfaceError("gone"), ValkeyError("gone"), BrokerError("gone"), TimeoutError()]


@pytest.fixture
def flaky(monkeypatch):
    """Return a function that lets the next looks at the results fail with an error."""
    monkeypatch.setattr(foreground, "OUTAGE_PAUSE", 0.01)
    collect, errors = ItemLoop.collect, []

    def collect_or_fail(item_loop, **options):
        if errors:
            raise errors.pop()
        return collect(item_loop, **options)

    monkeypatch.setattr(ItemLoop, "collect", collect_or_fail)
    return errors.extend


@pytest.mark.usefixtures("idle_engine")
@pytest.mark.parametrize("error", OUTAGES, ids=type)
def test_a_command_tries_again_after_an_outage(error, flaky):
    agent = AgentFactory(model=DEMO, instructions="")
    experiment = new_experiment(make_dataset("One", "Two"), member("editor"), agent)
    flaky([error] * 3)

    foreground.run_to_end(experiment, foreground.create_command_job(experiment))

    experiment.refresh_from_db()
    assert (experiment.status, experiment.succeeded_count) == ("completed", 2)


@pytest.mark.usefixtures("idle_engine")
def test_a_command_gives_up_after_a_long_outage(flaky, monkeypatch):
    agent = AgentFactory(model=DEMO, instructions="")
    experiment = new_experiment(make_dataset("One"), member("editor"), agent)
    monkeypatch.setattr(foreground, "MAX_OUTAGE", -1.0)
    flaky([OperationalError("gone")])

    with pytest.raises(OperationalError):
        foreground.run_to_end(experiment, foreground.create_command_job(experiment))

    experiment.refresh_from_db()
    assert (experiment.status, experiment.results.count()) == ("failed", 0)


@pytest.mark.usefixtures("idle_engine")
def test_an_error_of_the_application_is_not_tried_again(flaky):
    agent = AgentFactory(model=DEMO, instructions="")
    experiment = new_experiment(make_dataset("One"), member("editor"), agent)
    flaky([ValueError("a bug"), ValueError("a bug")])

    with pytest.raises(ValueError, match="a bug"):
        foreground.run_to_end(experiment, foreground.create_command_job(experiment))

    experiment.refresh_from_db()
    assert (experiment.status, "unexpected error (ValueError)" in experiment.error) == ("failed", True)
