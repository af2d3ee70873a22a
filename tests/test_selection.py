"""Tests that run on both databases, and the collection of `make drill`."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentcms.server.processes import PROJECT
from tests import conftest


def test_a_test_without_a_database_runs_on_sqlite_only(request):
    assert not conftest.uses_database(request.node)


@pytest.mark.django_db
def test_a_marked_test_uses_a_database(request):
    assert conftest.uses_database(request.node)


def test_a_test_with_a_fixture_that_requests_the_database_uses_it(request, django_user_model, idle_engine):
    assert conftest.uses_database(request.node)


def test_a_test_in_a_module_that_starts_copies_uses_a_database(request, monkeypatch):
    monkeypatch.setattr(request.module, "serving", None, raising=False)

    assert conftest.uses_database(request.node)


def test_every_function_that_starts_a_copy_is_known():
    """Tests that only use an unknown one would not run on PostgreSQL."""
    functions = {*copying_functions()}

    assert functions <= conftest.COPY_NAMES
    assert "conversing_deployment" in functions


def copying_functions():
    """Yield the names of context managers outside test modules that call a known one."""
    for path in sorted(Path(conftest.__file__).parent.rglob("*.py")):
        module = ast.parse(path.read_text())
        for function in module.body if not path.name.startswith("test_") else []:
            decorators = {ast.unparse(item) for item in getattr(function, "decorator_list", [])}
            names = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
            if decorators & {"contextmanager", "contextlib.contextmanager"} and names & conftest.COPY_NAMES:
                yield function.name


def test_make_drill_collects_every_test_of_durable_runs():
    """One error of the collection ends a whole `make drill`."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-p", "no:cacheprovider"]
    collected = subprocess.run(
        [*command, "tests/durable"],
        env={**os.environ, "DRILL": "1"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert collected.returncode == 0, collected.stdout[-2000:]
    assert "test_finished_steps_are_replayed[temporal]" in collected.stdout
