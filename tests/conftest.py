"""Fixtures of all tests, and the selection and order of tests."""

import gc
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker
from xdist.remote import Producer

from access_app.throttling.api import calls, wrong_keys
from agentcms.server import valkey as server_valkey
from agents_app.registry import Kind, registry
from jobs_app.runner import broker_circuit
from runs_app.models import run_configuration
from tests.emptying import delete_rows_after_tests
from tests.migrated import drop_databases, own_copy
from tests.rendering import record_contexts_of_pages
from tests.runs import wait_for_engine
from tests.scheduling import BothEndsScheduling
from tests.served import Served
from tests.served_accounts import find_or_create_template, serving_with_accounts
from tests.shop_server import running_shop
from tools_app.demo.address import HOST

# The duration of an example depends on the machine.
hypothesis_settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("patient")

delete_rows_after_tests()
record_contexts_of_pages()

# The collection of thousands of tests leaves no garbage. `pytest_collection_finish` enables it again.
gc.disable()

# Otherwise each process that a test starts would compile all of Django again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

DRILL = bool(os.environ.get("DRILL"))
# A test has a database if it requests one of these fixtures, or if its module uses one of these names to start copies.
DATABASE_FIXTURES = {"db", "transactional_db", "served", "own_served"}
COPY_NAMES = {
    "Served",
    "conversing_deployment",
    "own_database",
    "prepared",
    "serving",
    "serving_migrated",
    "serving_with_accounts",
}
# Tests that start processes take longest. They run first, so that all workers end at the same time.
LONGEST = (
    "tests/concurrency/test_crash_recovery.py",
    "tests/operations/",
    "tests/commands/",
    "tests/browser/",
    "tests/client",
)
# The metrics have a line for each route and status that tests of this process have requested. After most of the tests,
# reading them takes ten times the CPU.
READING_METRICS = "tests/agentcms/observability/"


# --- The rules of a run


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "postgres_only: runs on PostgreSQL, and is not there elsewhere",
        "sqlite_only: runs on SQLite, and is not there elsewhere",
        "drill: runs in `make drill`, and is not there elsewhere",
    ):
        config.addinivalue_line("markers", line)
    if runs_all_tests_in_workers(config):
        # The first tests need it, and one worker would create it on one processor while the others wait.
        threading.Thread(target=find_or_create_template, daemon=True).start()


def runs_all_tests_in_workers(config: pytest.Config) -> bool:
    """Return True in the main process of a run of all tests in several workers."""
    is_main = not hasattr(config, "workerinput") and bool(config.getoption("numprocesses", None))
    return is_main and config.args_source is config.ArgsSource.TESTPATHS


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BothEndsScheduling:
    return BothEndsScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect drills and tests that belong to the other database. A skip always means that something is missing."""
    names = Counter(item.nodeid for item in items)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise pytest.UsageError(f"pytest-xdist runs only one test of a name. Repeated names: {repeated[:5]}")
    if left_out := [item for item in items if not is_selected(item)]:
        config.hook.pytest_deselected(items=left_out)
        absent = set(left_out)
        items[:] = [item for item in items if item not in absent]
    items.sort(key=order)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude all modules and tests from the garbage collection, which would take a tenth of the CPU."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def order(item: pytest.Item) -> list[bool]:
    """Return the key by which tests are sorted: the longest, those of metrics, then those that wait for processes."""
    in_longest = [item.nodeid.startswith(path) for path in LONGEST]
    reads_metrics = item.nodeid.startswith(READING_METRICS)
    waits = starts_processes(item) or item.nodeid.startswith("tests/durable/")
    return [not is_early for is_early in (*in_longest, reads_metrics, waits)]


def is_selected(item: pytest.Item) -> bool:
    """Return True if the test belongs to this database and this kind of run."""
    absent = {"sqlite_only" if connection.vendor == "postgresql" else "postgres_only"}
    if not DRILL:
        absent.add("drill")
    if any(item.get_closest_marker(name) for name in absent):
        return False
    # Tests without a database have the same result everywhere. They run with those on SQLite.
    return connection.vendor != "postgresql" or uses_database(item)


def uses_database(item: pytest.Item) -> bool:
    return bool(
        item.get_closest_marker("django_db")
        or DATABASE_FIXTURES.intersection(item.fixturenames)
        or starts_processes(item)
    )


def starts_processes(item: pytest.Item) -> bool:
    """Return True if the module of the test starts copies."""
    return bool(COPY_NAMES.intersection(vars(item.module)))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        drop_databases()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with skipped tests where CI is set: they would run nowhere."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter and not hasattr(session.config, "workerinput") else []
    if os.environ.get("CI") and skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(f"{len(skipped)} skipped, which CI does not accept.", red=True)


# --- Figures


@pytest.fixture(scope="session")
def is_drill() -> bool:
    """Return True in `make drill`."""
    return DRILL


# --- The database


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Use a copy of a migrated database. The fixture of pytest-django would migrate one in each worker."""
    with ExitStack() as stack:
        with django_db_blocker.unblock():
            stack.enter_context(own_copy())
        yield
        with django_db_blocker.unblock():
            stack.close()


# --- What is registered


@pytest.fixture(autouse=True)
def restored_registry() -> Iterator[None]:
    """Restore the registry after a test that changed it."""
    before = {kind: registry.entries(kind) for kind in Kind}
    yield
    for kind, entries in before.items():
        if registry.entries(kind) != entries:
            for entry in registry.entries(kind):
                registry.remove(kind, entry.key)
            for entry in entries:
                registry.add(entry)


@pytest.fixture(autouse=True)
def cleared_throttles() -> None:
    """Clear throttles, circuit breakers and caches before each test."""
    run_configuration.clear_cache()
    calls.windows.clear()
    wrong_keys.windows.clear()
    broker_circuit.record_success()
    cache.clear()


# --- Runs


@pytest.fixture
def idle_engine(transactional_db: None) -> Iterator[None]:
    """Use a database that threads of the engine see, and stop all runs before it is emptied."""
    yield
    wait_for_engine()


# --- Real processes


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start an embedded Valkey and return its address."""
    with server_valkey.running_valkey(tmp_path_factory.mktemp("valkey"), os.environ) as address:
        yield address


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start a copy that all tests of a worker share. It has one account per role and no demo data.

    It may connect to the address of `shop_url`, and to no other private one. ACP agents may start
    the program "coder", and "helper", which tests/acp_agent.py is.
    """
    folder = tmp_path_factory.mktemp("served") / "var"
    commands = folder.with_name("acp-commands.json")
    programs = {"coder": ["/usr/bin/true"], "helper": [sys.executable, str(Path(__file__).parent / "acp_agent.py")]}
    commands.write_text(json.dumps({key: {"argv": argv, "sandbox": "none"} for key, argv in programs.items()}))
    with serving_with_accounts(folder, OUTBOUND_NETWORKS=f"{HOST}/32", ACP_COMMANDS=str(commands)) as copy:
        yield copy


@pytest.fixture(scope="session")
def shop_url() -> Iterator[str]:
    """Start the MCP server of the demo, and return its URL."""
    with running_shop() as url:
        yield url


@pytest.fixture
def own_served(tmp_path: Path) -> Iterator[Served]:
    """Start a copy for a single test that stops it, kills it or counts its rows."""
    with serving_with_accounts(tmp_path / "var", WEB_WORKERS="1") as copy:
        yield copy
