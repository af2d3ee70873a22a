"""The engines over DBOS and Temporal: a crash, a deployment, more runs than places, and the service away."""

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest

from agentcms.db.database_settings import database_config
from runs_app import cleanup
from runs_app.engine import workers
from runs_app.engine.runners import dbos, get_runner
from tests.durable.conftest import event_numbers
from tests.durable.decisions import settle, wait_for_suspension
from tests.durable.test_child_approval import start as start_family
from tests.durable.test_crash import TEN_CALLS, assert_complete
from tests.durable.test_journal import notes
from tests.durable.test_leases import start_here
from tests.runs import wait_for_end
from tests.served import wait_until


def test_a_killed_worker_is_replaced_and_no_finished_step_repeats(service_engine):
    engine = service_engine
    process = engine.start_process()
    run = engine.start(TEN_CALLS)
    engine.wait_for_note("tool 7 begins")

    engine.start_process()
    engine.kill(process)
    engine.open("seven")

    done = engine.finish(run)
    assert (done.status, done.output, done.error) == ("succeeded", "Done.", "")
    assert engine.notes("tool") == [
        f"tool {number} {state}" for number in range(10) for state in (["begins"] * (1 + (number == 7)) + ["ends"])
    ]
    assert engine.notes("model") == [f"model {number}" for number in range(11)]
    assert_complete(done)


def test_a_worker_that_stops_hands_its_runs_over(service_engine):
    engine = service_engine
    first = engine.start_process()
    runs = [engine.start([[["count", {"number": n, "gate": "later"}]], "Done."]) for n in range(3)]
    for number in range(3):
        engine.wait_for_note(f"tool {number} begins")

    engine.start_process()
    first.terminate()
    engine.open("later")
    first.wait(30)

    for run in runs:
        done = engine.finish(run)
        assert (done.status, done.error) == ("succeeded", "")
        assert event_numbers(done) == list(range(1, done.last_event_number + 1))


def test_a_repeated_message_changes_nothing(service_engine):
    engine = service_engine
    engine.start_process()
    run = engine.start([[["count", {"number": 0, "gate": "open"}]], "Done."])
    engine.wait_for_note("tool 0 begins")

    for _ in range(3):
        assert get_runner().dispatch(run.pk)
    engine.open("open")

    assert engine.finish(run).fence == 1
    assert engine.notes("tool") == ["tool 0 begins", "tool 0 ends"]


@pytest.fixture
def dbos_url_of(monkeypatch, settings):
    """Return a function that returns the parts of the URL that DBOS gets for a DATABASE_URL."""
    settings.DBOS_DATABASE_URL = ""

    def url_of(address):
        stored = database_config(address, Path("/data"), pool_size=4, use_prepared_statements=True, lock_timeout=5)
        monkeypatch.setattr(dbos, "connection", SimpleNamespace(vendor="postgresql", settings_dict=stored))
        return urlsplit(dbos.database_url())

    return url_of


def test_dbos_encrypts_its_connections_as_the_database_url_says(dbos_url_of):
    address = "postgres://cms:p%40ss@db.internal/cms?sslmode=verify-full&sslrootcert=/etc/ca.pem&connect_timeout=3"

    url = dbos_url_of(address)

    assert (url.username, url.password, url.path) == ("cms", "p%40ss", "/cms")
    tls = {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem"}
    assert dict(parse_qsl(url.query)) == {"host": "db.internal", "port": "5432", **tls}


def test_dbos_connects_to_the_host_in_the_query_of_the_database_url(dbos_url_of):
    address = "postgresql://cms:p%40%3A%2Fss@/cms?host=/run/postgresql&port=5433"

    url = dbos_url_of(address)

    assert (url.password, dict(parse_qsl(url.query))) == ("p%40%3A%2Fss", {"host": "/run/postgresql", "port": "5433"})


@pytest.mark.parametrize("local_engine", ["dbos"], indirect=True)
def test_the_clean_up_deletes_old_workflows_of_dbos(idle_engine, planned, settings):
    client = get_runner().client
    client.delete_workflows([workflow.workflow_id for workflow in client.list_workflows()])
    run = wait_for_end(start_here(["Done."]))
    wait_until(lambda: [workflow.status for workflow in client.list_workflows()] == ["SUCCESS"], 20, "the workflow")

    cleanup.delete_old_workflows()
    (workflow,) = client.list_workflows()
    settings.RUN_STEP_DAYS, settings.RUN_TIMEOUT = -1, 0  # as on the day after tomorrow
    cleanup.delete_old_workflows()

    assert workflow.input["args"] == (str(run.pk),)
    assert client.list_workflows() == []


@pytest.mark.parametrize("local_engine", ["celery", "dbos", "temporal", "inngest"], indirect=True)
def test_a_sub_agent_waits_and_goes_on_over_messages(idle_engine, planned):
    """On PostgreSQL, all tests of waiting runs pass over several engines."""
    run = wait_for_suspension(start_family(1, is_durable=True))
    settle(run, "approve")

    done = wait_for_end(run)

    assert (done.status, done.segment) == ("succeeded", 1)
    assert len(notes(planned, "refund")) == 1


@pytest.mark.parametrize(
    ("name", "setting", "service"),
    [
        ("dbos", {"DBOS_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}, "The database of DBOS is unavailable"),
        ("temporal", {"TEMPORAL_ADDRESS": "127.0.0.1:1"}, "The server of Temporal is unavailable"),
    ],
)
@pytest.mark.parametrize("local_engine", ["process"], indirect=True)
def test_without_the_service_the_process_that_starts_a_run_executes_it(
    name, setting, service, planned, idle_engine, settings, caplog, monkeypatch
):
    monkeypatch.setattr(workers, "is_any_alive", lambda: True)
    settings.RUN_ENGINE = name
    for key, value in setting.items():
        setattr(settings, key, value)
    get_runner.cache_clear()
    try:
        done = wait_for_end(start_here(["Done."]))
    finally:
        get_runner.cache_clear()

    assert (done.status, done.output) == ("succeeded", "Done.")
    assert service in caplog.text
    assert "No worker can be reached, so this process executes runs itself." in caplog.text
