"""Tests that run on both databases."""

import pytest

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
