"""Services that do not respond while an experiment runs: its job is tried again, and the experiment goes on."""

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import ConnectionError as ValkeyError

from evals_app.experiments.jobs import WALK, Walk
from jobs_app import runner
from jobs_app.models import Job
from tests.evals_app.experiment_runs import make_dataset, new_experiment, work
from tests.factories import AgentFactory, member
from tests.runs import DEMO


@pytest.mark.usefixtures("idle_engine")
@pytest.mark.parametrize("error", [ValkeyError("gone"), BrokerError("gone"), ConnectionResetError("gone")], ids=type)
def test_an_outage_within_a_walk_is_tried_again(error, monkeypatch):
    agent = AgentFactory(model=DEMO, instructions="")
    experiment = new_experiment(make_dataset("One", "Two"), member("editor"), agent)
    job = Job.objects.get(kind=WALK)

    def collect(walk):
        raise error

    with monkeypatch.context() as outage:
        outage.setattr(Walk, "collect", collect)
        interrupted = runner.run_claimed(str(job.pk))
    experiment.refresh_from_db()
    assert (interrupted.state, experiment.status) == (Job.State.RUNNING, "running")

    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now())
    runner.run_claimed(str(job.pk))
    work()

    experiment.refresh_from_db()
    assert (experiment.status, experiment.succeeded_count) == ("completed", 2)
