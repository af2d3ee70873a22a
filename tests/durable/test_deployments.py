"""A web server and a worker that are deployed anew, killed, or without broker or database, while people read runs."""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from agentcms.server.processes import PROJECT
from tests.conftest import DRILL
from tests.durable.deployment import Broker, Deployment, wait_for_progress, wait_for_readers
from tests.operations.test_stopped_postgres import own_postgres
from tests.served import Served, wait_until
from tests.served_accounts import prepared

RUNS = 20 if DRILL else 5
DEPLOYED_RUNS = 50 if DRILL else 8
CALLS = 10 if DRILL else 5
KILLS = 100
POSTGRES_STOPS = 20
SECONDS_WITHOUT_BROKER = 60


def finish(deployment: Deployment, seconds: float = 180) -> list[dict]:
    """Wait for the ends of all runs, check each of them, and return them."""
    wait_for_readers(deployment.readers, seconds)
    return [reader.assert_complete(CALLS) for reader in deployment.readers]


def wait_for_calls(deployment: Deployment, more: int) -> None:
    """Wait until so many more calls have begun or ended, or until all runs are over."""
    count = len(deployment.notes("work")) + more
    wait_until(
        lambda: len(deployment.notes("work")) >= count or not deployment.unfinished(),
        90,
        f"{count} calls; unfinished: {[run.run_id for run in deployment.unfinished()]}; see {deployment.copy.log}",
    )


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[Broker]:
    server = Broker(tmp_path_factory.mktemp("broker") / "valkey")
    yield server
    server.remove()


@pytest.fixture(scope="module")
def shared_deployment(tmp_path_factory, broker) -> Iterator[Deployment]:
    with prepared(tmp_path_factory.mktemp("deployments") / "var") as copy:
        deployment = Deployment(copy, broker)
        try:
            deployment.start("web", "worker")
            deployment.wait_until_ready()
            deployment.create_agent(CALLS)
            yield deployment
        finally:
            deployment.stop()


@pytest.fixture
def deployment(shared_deployment) -> Deployment:
    """Return the deployment without runs of the test before."""
    shared_deployment.readers.clear()
    return shared_deployment


def test_a_deployment_under_runs_fails_and_repeats_none(deployment):
    """Tools may finish, so a call is repeated only if the machine was too slow for that, and then once."""
    runs = deployment.start_runs(DEPLOYED_RUNS)
    wait_for_calls(deployment, DEPLOYED_RUNS)

    codes = deployment.terminate("web", "worker")
    deployment.start("web", "worker")

    finish(deployment)
    assert codes == [0, 0]
    assert all(Counter(deployment.begun_calls(run.run_id)).most_common(1)[0][1] <= 2 for run in runs)
    deployment.wait_until_ready()


@pytest.mark.drill
def test_runs_go_on_without_the_broker_and_come_back_to_the_worker(deployment):
    deployment.start_runs(RUNS)
    wait_until(lambda: all(run.numbers for run in deployment.readers), 60, "the first event of each run")
    deployment.broker.kill()
    try:
        end = time.monotonic() + SECONDS_WITHOUT_BROKER
        while time.monotonic() < end:
            deployment.start_runs(1)
            time.sleep(1)
    finally:
        deployment.broker.start()

    finish(deployment)
    wait_until(lambda: is_carried_by_worker(deployment), 60, "a run in the worker")


def is_carried_by_worker(deployment: Deployment) -> bool:
    (run,) = deployment.start_runs(1)
    wait_for_readers([run], 60)
    run.assert_complete(CALLS)
    return deployment.processes_of(run.run_id) == {deployment.parts["worker"].pid}


@pytest.mark.drill
def test_killed_processes_lose_no_run_and_repeat_no_finished_step(deployment):
    for kill in range(KILLS):
        deployment.start_runs(RUNS - len(deployment.unfinished()))
        wait_for_calls(deployment, RUNS)
        wait_for_progress(deployment)
        victims = (("worker",), ("web",), ("web", "worker"))[kill % 3]
        deployment.kill(*victims)
        deployment.start(*victims)
        time.sleep(random.uniform(0, 1))

    finish(deployment)
    deployment.wait_until_ready()


@pytest.mark.drill
@pytest.mark.postgres_only
def test_runs_survive_crashes_of_postgresql(tmp_path):
    server = Broker(tmp_path / "valkey")
    try:
        with own_postgres() as postgres:
            deployment = Deployment(Served(tmp_path / "var", DATABASE_URL=postgres.url), server)
            try:
                stop_postgres_under_runs(deployment, postgres)
            finally:
                deployment.stop()
    finally:
        server.remove()


def stop_postgres_under_runs(deployment: Deployment, postgres) -> None:
    command = [sys.executable, "-m", "agentcms.server.prepare"]
    subprocess.run(command, env=deployment.copy.environment, cwd=PROJECT, check=True, timeout=120)
    deployment.copy.create_user("root", "--superuser")
    deployment.copy.keys["root"] = deployment.copy.create_api_key("root")
    deployment.start("web", "worker")
    deployment.wait_until_ready()
    deployment.create_agent(CALLS)
    for number in range(POSTGRES_STOPS):
        deployment.start_runs(RUNS - len(deployment.unfinished()))
        wait_for_calls(deployment, RUNS)
        postgres.stop()
        time.sleep(8 if number % 4 == 3 else 1)  # longer than the lease of a durable run, or shorter
        postgres.start()
    finish(deployment)
