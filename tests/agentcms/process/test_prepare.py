"""Preparations of a start at the same moment: they wait for each other."""

from threading import Event, Thread

import pytest
from django.db import connections

from agentcms.server import prepare

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("name", ["folder", pytest.param("database", marks=pytest.mark.postgres_only)])
def test_a_second_preparation_waits_for_the_first(tmp_path, name, capsys):
    locks = {"folder": lambda: prepare.folder_lock(tmp_path), "database": prepare.database_lock}
    has_begun = Event()

    def begin():
        try:
            with locks[name]():
                has_begun.set()
        finally:
            connections.close_all()

    second = Thread(target=begin)
    with locks[name]():
        second.start()
        assert not has_begun.wait(0.3)

    second.join(10)
    assert has_begun.is_set()
    assert prepare.WAITING_MESSAGE in capsys.readouterr().out


@pytest.mark.postgres_only
def test_the_lock_of_the_database_ends_without_a_warning_of_the_pool(caplog):
    with caplog.at_level("WARNING"), prepare.database_lock():
        pass

    assert caplog.messages == []
