"""The number of queries of the frequent requests; each begins with one query for the API key and its user."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api_client import AGENTS, agent_path, version_path


def queries(act):
    with CaptureQueriesContext(connection) as captured:
        assert act().status_code < 400
    return [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]


@pytest.fixture(params=["member", "superuser"])
def caller(request, api, admin_caller):
    """Return a caller whose key has just been used, so that its last use is not written again."""
    chosen = api if request.param == "member" else admin_caller
    chosen.create("a")
    chosen.patch(agent_path("a"), {"name": "Two"})
    return chosen


def test_reading_an_agent_takes_one_query_even_after_an_edit(caller):
    path = agent_path(caller.create("new").body["id"])

    first, again = (queries(lambda: caller.get(path)) for _ in range(2))
    caller.patch(path, {"name": "Three"})
    changed = queries(lambda: caller.get(path))

    assert [len(first), len(again), len(changed)] == [2, 2, 2]


def test_a_304_takes_one_query_even_after_an_edit(caller):
    newest = caller.patch(agent_path("a"), {"name": "Three"}).headers["ETag"]

    assert len(queries(lambda: caller.get(agent_path("a"), If_None_Match=newest))) == 2


def test_an_agent_with_sub_agents_takes_one_more_query(caller):
    caller.patch(agent_path("a"), {"agents": ["b"]})
    caller.get(agent_path("a"))

    assert len(queries(lambda: caller.get(agent_path("a")))) == 3


def test_a_list_takes_queries_for_page_total_and_uncached_agents(caller):
    for number in range(20):
        caller.create(f"b{number}")

    first, again = (queries(lambda: caller.get(AGENTS)) for _ in range(2))

    assert [len(first), len(again)] == [4, 3]
    assert not any("snapshot" in sql for sql in again)


def test_a_history_takes_queries_for_agent_page_and_uncached_versions(caller):
    first, again = (queries(lambda: caller.get(agent_path("a", "versions"))) for _ in range(2))

    assert [len(first), len(again)] == [4, 3]
    assert not any("snapshot" in sql for sql in again)


def test_a_version_takes_one_query_and_a_second_the_first_time(caller):
    path = version_path(caller.get(agent_path("a")).body["activeVersionId"], agent_id="a")

    first, again = (queries(lambda: caller.get(path)) for _ in range(2))

    assert [len(first), len(again)] == [3, 2]


def test_a_comparison_takes_one_query_and_a_second_the_first_time(caller):
    path = f"{agent_path('a', 'versions', 'compare')}?from=live&to=head"

    first, again = (queries(lambda: caller.get(path)) for _ in range(2))

    assert [len(first), len(again)] == [3, 2]
    assert not any("snapshot" in sql for sql in again)


def test_an_edit_takes_few_queries(caller):
    made = queries(lambda: caller.patch(agent_path("a"), {"instructions": "New"}))

    # The key. In one round trip: lock, live version. Gates. In another: row, index, activation, version. Then pruning.
    assert len(made) == 8, made


def test_an_edit_without_a_change_takes_two_queries_in_one_round_trip(caller):
    assert len(queries(lambda: caller.patch(agent_path("a"), {"name": "Two"}))) == 3


def test_a_request_with_a_key_reads_no_session(caller):
    assert not any("django_session" in sql for sql in queries(lambda: caller.get(AGENTS)))
