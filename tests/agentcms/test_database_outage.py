"""Requests during a database outage, at every URL and after any number of queries."""

import re

import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client

from runs_app.events.streams import stream_slots
from tests.factories import AgentFactory, UserFactory, api_key
from tests.routes import all_routes
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


ROUTES = sorted({route.path for route in all_routes()})


def fill_parameters(route, run):
    """Return the route with parameters of existing objects."""
    route = re.sub(r"<uuid:\w+>", str(run.pk), route)
    return "/" + re.sub(r"<[^>]+>", "1", route)


class FailingDatabase:
    """An execute wrapper that fails after a number of queries."""

    def __init__(self, questions):
        self.left = questions
        self.has_failed = False

    def __call__(self, execute, *arguments):
        if self.left <= 0:
            self.has_failed = True
            raise OperationalError("server closed the connection unexpectedly")
        self.left -= 1
        return execute(*arguments)


@pytest.fixture(autouse=True)
def _places():
    """Release the slots of streams that a test opened."""
    yield
    stream_slots.count_by_user.clear()


@pytest.fixture
def callers():
    """Return a browser client and an API client of superusers."""
    user = UserFactory(is_superuser=True, is_staff=True)
    browser = Client(raise_request_exception=False)
    browser.force_login(user)
    program = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {api_key(user)}"})
    return lambda route: program if route.startswith("api/") else browser


def requests_with_limits(client, method, address):
    """Yield the number of queries that succeed, and the response to a request whose changes are rolled back.

    A request that ends before the database fails would do the same with a higher limit.
    """
    for questions in (0, 1, 2, 4):
        database = FailingDatabase(questions)
        with transaction.atomic():
            with connection.execute_wrapper(database):
                yield questions, getattr(client, method)(address)
            transaction.set_rollback(True)
        if not database.has_failed:
            return


@pytest.mark.parametrize("method", ["get", "post"])
def test_every_url_answers_503_when_the_database_fails(callers, method):
    run = RunFactory(agent=AgentFactory(id="1"))
    failures = {}
    for route in ROUTES:
        address = fill_parameters(route, run)
        for questions, answer in requests_with_limits(callers(route), method, address):
            failures[address, questions] = answer

    # A route that is not supported answers 501 without the database.
    broken = {address: answer for address, answer in failures.items() if answer.status_code >= 500}
    broken = {address: answer for address, answer in broken.items() if answer.status_code != 501}
    silent = {address: answer.status_code for address, answer in broken.items() if "Retry-After" not in answer.headers}
    assert silent == {}
    assert {answer.status_code for answer in broken.values()} == {503}
