"""The queries of frequent operations, in order."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.factories import AgentFactory
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db

QUERY = re.compile(r'(SELECT\b.*? FROM|UPDATE|INSERT INTO|DELETE FROM) "?(?:agents|versions)_app_(\w+)', re.DOTALL)
LOCK = ["SELECT agent"]
RECORD = ["UPDATE agent", "UPDATE agentindex"]  # the pointers, and the index for lists and search
LIVE, VERSION = ["INSERT activation"], ["INSERT agentversion"]
VERSIONS = ["SELECT agentversion"]  # live and head are the same version


@pytest.fixture
def agent():
    """Return an agent with two versions, loaded as by a request."""
    AgentFactory(id="a").edit({"name": "Porter"})
    return Agent.objects.get(pk="a")


def recorded_queries(act):
    """Return verb and table of each query, without savepoints."""
    with CaptureQueriesContext(connection) as captured:
        act()
    queries = [QUERY.match(query["sql"]) for query in captured]
    return [f"{match[1].split()[0]} {match[2]}" for match in queries if match]


def test_queries_of_a_save_with_a_change(agent):
    agent.name = "Butler"

    # The configuration and the pointers are written together.
    assert recorded_queries(agent.save) == [*LOCK, *VERSIONS, *RECORD, *LIVE, *VERSION]


def test_queries_of_a_save_without_a_change(agent):
    assert recorded_queries(agent.save) == [*LOCK, *VERSIONS, "UPDATE agent"]


def test_queries_of_an_edit_with_a_change(agent):
    edit = recorded_queries(lambda: agent.edit({"name": "Butler"}))

    assert edit == [*LOCK, *VERSIONS, *RECORD, *LIVE, *VERSION]


def test_queries_of_an_edit_without_a_change(agent):
    assert recorded_queries(lambda: agent.edit({"name": "Porter"})) == [*LOCK, *VERSIONS]


def test_queries_of_saving_a_draft(agent):
    with change(publish=False):
        edit = recorded_queries(lambda: agent.edit({"name": "Butler"}))

    assert [query for query in edit if "activation" in query] == []
    assert len(edit) <= 7


def test_queries_of_activating(agent):
    version = agent.versions.last()

    assert recorded_queries(version.activate) == [*LOCK, *VERSIONS, "SELECT agentversion", *RECORD, *LIVE]


def test_queries_of_activating_the_live_version(agent):
    version = agent.versions.first()

    assert recorded_queries(version.activate) == [*LOCK, *VERSIONS, "SELECT agentversion"]


def test_queries_of_restoring(agent):
    version = agent.versions.last()

    assert recorded_queries(version.restore) == [*LOCK, *VERSIONS, "SELECT agentversion", *RECORD, *LIVE, *VERSION]


def test_queries_of_a_manual_snapshot(agent):
    snapshot = recorded_queries(lambda: AgentVersion.objects.snapshot(agent))

    assert snapshot == [*LOCK, *VERSIONS, "UPDATE agent", *VERSION]


def test_queries_of_creating():
    create = recorded_queries(lambda: AgentFactory(id="b"))

    assert create[:3] == ["INSERT agent", "DELETE agentindex", "UPDATE agent"]
    assert create[-2:] == [*LIVE, *VERSION]
    assert len(create) <= 6


def test_pruning_takes_one_more_query_only_over_the_limit(agent, settings):
    settings.AGENT_VERSION_LIMIT = 5
    for name in ("3", "4"):
        agent.edit({"name": name})
    within = recorded_queries(lambda: agent.edit({"name": "5"}))

    over = recorded_queries(lambda: agent.edit({"name": "6"}))

    assert over == [*within, "DELETE agentversion"]


def test_reading_agents_with_versions_takes_one_query(agent, django_assert_num_queries):
    AgentFactory()

    with django_assert_num_queries(1):
        assert [item.resolved()["name"] for item in Agent.objects.with_versions()]


def test_the_number_of_versions_does_not_change_the_queries(agent):
    few = recorded_queries(lambda: agent.edit({"name": "few"}))
    for number in range(20):
        agent.edit({"name": f"{number}"})

    assert recorded_queries(lambda: agent.edit({"name": "many"})) == few
