"""The changes and sizes of a history, which are read from snapshots once."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import AgentFactory
from tests.history_pages import edit, page, version
from versions_app.history.cached_changes import VersionPair, find_changes, snapshot_id
from versions_app.history.instruction_sizes import instruction_sizes

pytestmark = pytest.mark.django_db

SNAPSHOT = '"versions_app_agentversion"."snapshot"'
INSTRUCTIONS = "Greet guests warmly.\nAnswer briefly.\nOpen the door."


def snapshot_queries(act):
    """Return how many queries of an act read snapshots."""
    with CaptureQueriesContext(connection) as queries:
        act()
    return sum(SNAPSHOT in query["sql"] for query in queries)


def pair(agent, before, after):
    return VersionPair(snapshot_id(version(agent, before)), snapshot_id(version(agent, after)))


def test_the_second_visit_reads_no_snapshot(publisher, drafted):
    page(publisher, "list", drafted)

    assert snapshot_queries(lambda: page(publisher, "list", drafted)) == 0


def test_a_new_version_is_read_on_the_next_visit(publisher, drafted):
    page(publisher, "list", drafted)
    edit(drafted, publish=False, instructions=INSTRUCTIONS)

    html = page(publisher, "list", drafted).content.decode()

    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert f"v5, {len(INSTRUCTIONS)}" in text
    assert text.count("Instructions +1") == 2  # of the second version too


def test_sizes_are_those_of_each_version(story):
    edit(story, instructions=INSTRUCTIONS)
    hashes = {number: version(story, number).snapshot_hash for number in (1, 4)}

    first = instruction_sizes(story, hashes)

    assert (
        first
        == instruction_sizes(story, hashes)
        == [(1, len("Greet guests.\nAnswer briefly.")), (4, len(INSTRUCTIONS))]
    )
    assert snapshot_queries(lambda: instruction_sizes(story, hashes)) == 0


def test_changes_are_found_in_both_directions(story):
    there, back = pair(story, 2, 3), pair(story, 3, 2)

    changes = find_changes([there, back])

    assert [str(change) for change in changes[there]] == ["Tools +search"]
    assert [str(change) for change in changes[back]] == ["Tools −search"]


def test_a_pair_with_a_deleted_version_is_left_out():
    agent = AgentFactory(instructions="Greet everybody who comes in.")
    edit(agent, instructions="Greet nobody.")
    edit(agent, instructions="Greet somebody.")
    deleted, other = pair(agent, 1, 2), pair(agent, 2, 3)
    version(agent, 1).remove()

    assert [*find_changes([deleted, other])] == [other]
