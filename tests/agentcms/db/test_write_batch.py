"""Rows written by prepared SQL, compared with rows written by Django."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Model
from django.db.models.signals import post_save, pre_save
from django.test.utils import CaptureQueriesContext

from agentcms.db.statements import write_batch
from agents_app.editing.change_context import Source
from agents_app.models import AgentIndex
from tests.factories import AgentFactory, UserFactory
from versions_app.models import Activation, AgentVersion

pytestmark = pytest.mark.django_db

ODD = {"é": [1, 1.5, True, None, "\u2028", {"deep": []}], "big": 2**60}


@pytest.fixture
def recorded_signals():
    """Record the arguments of all save signals."""
    signals = []

    def listen(sender, instance, signal, **options):
        signals.append((sender, "post" if signal is post_save else "pre", options))

    pre_save.connect(listen)
    post_save.connect(listen)
    yield signals
    pre_save.disconnect(listen)
    post_save.disconnect(listen)


def version(agent, number):
    return AgentVersion(
        agent=agent,
        version_number=number,
        snapshot_text='{"name":"é"}',
        snapshot_hash="0" * 64,
        references=ODD,
        changed_fields=["name"],
        author=UserFactory(username=f"ann{number}"),
        source=Source.API,
    )


def stored_values(row):
    values = dict(type(row).objects.filter(pk=row.pk).values().get())
    return {name: value for name, value in values.items() if name not in ("id", "version_number", "author_id")}


def test_an_inserted_row_equals_a_saved_one(recorded_signals):
    agent = AgentFactory()
    mine, django = version(agent, 901), version(agent, 902)
    django.created_at = mine.created_at
    recorded_signals.clear()

    Model.save(django, force_insert=True)
    said_by_django = [signal for signal in recorded_signals if signal[0] is AgentVersion]
    recorded_signals.clear()
    write_batch.insert_row(mine)

    assert stored_values(mine) == stored_values(django)
    assert [signal for signal in recorded_signals if signal[0] is AgentVersion] == said_by_django
    assert not mine._state.adding
    assert mine._state.db == django._state.db


def test_a_value_computed_by_the_database_is_returned():
    agent = AgentFactory()
    moved = Activation(agent=agent, to_version_id=agent.active_version_id, to_version_number=1)

    write_batch.insert_row(moved)

    assert Activation.objects.get(pk=moved.pk).to_version_id == agent.active_version_id


def test_inserting_an_existing_row_is_refused():
    agent = AgentFactory()

    with pytest.raises(IntegrityError), transaction.atomic():
        write_batch.insert_row(version(agent, 1))


def test_an_update_writes_the_values_and_returns_the_row_count():
    agent, counts = AgentFactory(), []

    for agent_id in (agent.pk, "nobody"):
        batch = write_batch.WriteBatch()
        batch.update(AgentIndex, "agent_id", agent_id, {"metadata": ODD, "name": "New"}, counts.append).send()

    assert counts == [1, 0]
    assert AgentIndex.objects.values_list("metadata", "name").get(agent=agent) == (ODD, "New")


@pytest.mark.postgres_only
def test_statements_are_recorded_for_observers_and_return_the_same_rows_without():
    AgentFactory(id="a")
    statement = "SELECT id FROM agents_app_agent WHERE id = %s"

    with CaptureQueriesContext(connection) as captured:
        watched = connection.run_statement(statement, ["a"])

    assert len(captured) == 1
    assert (
        watched == connection.run_statement(statement, ["a"]) == connection.run_statement(statement, ["a"]) == [("a",)]
    )
    assert connection.run_statement(statement, ["b"]) == []


@pytest.mark.postgres_only
def test_a_failed_statement_can_run_again():
    statement = "SELECT 1 / %s::int"

    with pytest.raises(Exception, match="division by zero"), transaction.atomic():
        connection.run_statement(statement, [0])

    assert connection.run_statement(statement, [1]) == [(1,)]


def test_signals_are_sent_after_all_writes_of_a_batch(recorded_signals):
    agent = AgentFactory()
    mine, counts = version(agent, 901), []
    recorded_signals.clear()

    writes = write_batch.WriteBatch().insert(mine)
    writes.update(AgentIndex, "agent_id", agent.pk, {"name": "New"}, counts.append)
    writes.update(AgentIndex, "agent_id", "nobody", {"name": "New"}, counts.append)
    assert [kind for sender, kind, _ in recorded_signals if sender is AgentVersion] == ["pre"]
    writes.send()

    assert [kind for sender, kind, _ in recorded_signals if sender is AgentVersion] == ["pre", "post"]
    assert counts == [1, 0]
    assert AgentVersion.objects.get(pk=mine.pk).version_number == 901
    assert AgentIndex.objects.get(agent=agent).name == "New"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_refused_write_sends_no_signals(recorded_signals, place):
    agent = AgentFactory()
    versions = [version(agent, number) for number in (901, 902)]
    versions.insert(place, version(agent, 1))
    recorded_signals.clear()

    writes = write_batch.WriteBatch()
    for row in versions:
        writes.insert(row)
    with pytest.raises(IntegrityError), transaction.atomic():
        writes.send()

    assert {kind for sender, kind, _ in recorded_signals if sender is AgentVersion} == {"pre"}
    assert AgentVersion.objects.filter(agent=agent).count() == 1
    write_batch.insert_row(version(agent, 903))  # the connection stays usable
