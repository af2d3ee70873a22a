"""Immutable snapshots and the trigger that protects them."""

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from agents_app.configuration.schema import ADDED_FIELDS, WIRE_NAMES
from agents_app.editing.change_context import change
from tests.factories import AgentFactory, UserFactory
from versions_app.integrity import triggers
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db

FROZEN = {
    "snapshot_text": "{}",
    "snapshot_hash": "0" * 64,
    "version_number": 7,
    "agent_id": "other",
    "created_at": "2001-01-01T00:00:00Z",
    "based_on": 7,
    "changed_fields": ["name"],
    "author_name": "somebody else",
    "source": "import",
}


@pytest.fixture
def version():
    AgentFactory(id="other")
    with change(actor=UserFactory(username="ann")):
        return AgentFactory(id="a").versions.get()


def row(version):
    return AgentVersion.objects.filter(pk=version.pk).values().get()


@pytest.mark.parametrize(("name", "value"), FROZEN.items())
def test_the_database_refuses_changes_of_a_version_by_the_orm(version, name, value):
    before = row(version)

    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
        QuerySet.update(AgentVersion.objects.filter(pk=version.pk), **{name: value})

    assert row(version) == before


@pytest.mark.parametrize("name", ["snapshot", "snapshot_hash", "author_name"])
def test_the_database_refuses_changes_of_a_version_by_sql(version, name):
    before = row(version)

    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE versions_app_agentversion SET {name} = 'x'")

    assert row(version) == before


def test_saving_a_changed_version_is_refused(version):
    version.snapshot_text = "{}"

    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
        version.save()


def test_a_version_cannot_be_moved_to_another_agent(version):
    other = AgentFactory()

    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
        other.versions.add(version, bulk=False)


def test_name_message_and_pin_can_be_changed(version):
    version.update_description(name="Opening", change_message="First try", pinned=True)

    stored = AgentVersion.objects.get(pk=version.pk)
    assert (stored.name, stored.change_message, stored.pinned) == ("Opening", "First try", True)


def test_saving_an_unchanged_version_is_allowed(version):
    stored = AgentVersion.objects.get(pk=version.pk)
    stored.name = "Opening"

    stored.save()

    assert AgentVersion.objects.get(pk=version.pk).name == "Opening"


def test_the_migrations_create_the_trigger():
    assert triggers.is_trigger_installed()


@pytest.mark.django_db(transaction=True)
def test_migrating_again_restores_a_missing_trigger(version):
    drop_trigger()
    assert not triggers.is_trigger_installed()

    call_command("migrate", verbosity=0)

    assert triggers.is_trigger_installed()


@pytest.mark.django_db(transaction=True)
def test_migrating_again_replaces_an_old_trigger(version):
    drop_trigger()
    install_weaker_trigger()

    call_command("migrate", verbosity=0)

    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
        QuerySet.update(AgentVersion.objects.filter(pk=version.pk), snapshot_hash="0" * 64)


def drop_trigger() -> None:
    suffix = f" ON {triggers.TABLE}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {triggers.TRIGGER_NAME}{suffix}")


def install_weaker_trigger() -> None:
    """Install a trigger that protects only the number of a version."""
    when = f"BEFORE UPDATE ON {triggers.TABLE} FOR EACH ROW WHEN (OLD.version_number <> NEW.version_number)"
    act = f"EXECUTE FUNCTION {triggers.TRIGGER_NAME}()" if connection.vendor == "postgresql" else "BEGIN SELECT 1; END"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TRIGGER {triggers.TRIGGER_NAME} {when} {act}")


def test_a_snapshot_contains_only_the_configuration_under_wire_names(version):
    unset = {WIRE_NAMES[name] for name in ADDED_FIELDS}
    assert set(version.snapshot) == set(WIRE_NAMES.values()) - unset
    assert not {"id", "ownerId", "createdAt", "activeVersionId"} & set(version.snapshot)
