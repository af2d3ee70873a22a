"""Reads while the database is unavailable."""

import threading

import pytest
from django.db import DataError, InterfaceError, OperationalError

from agentcms.db import outages
from agentcms.db.outages import read_through_outage

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(outages, "RETRY_INTERVAL", 0.01)


@pytest.fixture
def stopping():
    return threading.Event()


def failing(*errors):
    """Return a function that raises these errors, one after the other, and then returns its argument."""
    left = [*errors]

    def read(value):
        if left:
            raise left.pop(0)
        return value

    return read


def test_a_read_is_repeated_until_the_database_is_back(stopping, caplog):
    read = failing(OperationalError("gone"), InterfaceError("closed"))

    assert read_through_outage(stopping, read, "row") == "row"
    assert len(caplog.messages) == 2


def test_other_errors_are_raised_at_once(stopping):
    with pytest.raises(DataError):
        read_through_outage(stopping, failing(DataError("bad")), "row")


def test_a_long_outage_is_an_error(stopping, monkeypatch):
    monkeypatch.setattr(outages, "OUTAGE_TIMEOUT", 0.05)

    with pytest.raises(OperationalError):
        read_through_outage(stopping, failing(*[OperationalError("gone")] * 1000), "row")


def test_a_process_that_stops_repeats_nothing(stopping):
    stopping.set()

    with pytest.raises(OperationalError):
        read_through_outage(stopping, failing(OperationalError("gone")), "row")
