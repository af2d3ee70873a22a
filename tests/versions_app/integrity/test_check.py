"""Checking and repairing the history."""

import tracemalloc
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents_app.editing.change_context import change
from agents_app.models import AgentIndex
from agents_app.models.search_index import FTS_TABLE
from jobs_app import runner
from jobs_app.models import Job
from tests.factories import AgentFactory
from versions_app.integrity import triggers
from versions_app.integrity.check import CHECK_HISTORY
from versions_app.models import Activation, AgentVersion

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    agent = AgentFactory(id="porter")
    agent.edit({"name": "Porter"})
    return agent


def write(table, agent, **columns):
    """Change columns by SQL."""
    drop_trigger()
    key = "id" if table == "agents_app_agent" else "agent_id"
    with connection.cursor() as cursor:
        for column, value in columns.items():
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE {key} = %s", [value, agent.pk])
    triggers.install_trigger("default")


def drop_trigger():
    on = f" ON {triggers.TABLE}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {triggers.TRIGGER_NAME}{on}")


def check(**parameters):
    return runner.run_claimed(str(Job.objects.create(kind=CHECK_HISTORY, parameters=parameters).pk)).result


def kinds(result):
    return set(result["counts"])


def as_stored(key):
    return key if connection.vendor == "postgresql" else key.hex


def test_a_consistent_history_has_no_faults(agent):
    result = check()

    assert (result["found"], result["agents"], result["versions"]) == (0, 1, 2)


def test_few_configurations_are_in_memory_at_a_time():
    for _ in range(40):
        AgentFactory(instructions="word " * 40_000)

    tracemalloc.start()
    assert check()["agents"] == 40
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 30 << 20


def test_a_row_changed_by_sql_gets_a_version_and_keeps_the_old_one(agent):
    write("agents_app_agent", agent, name="Written by hand")

    assert kinds(check()) == {"row"}
    assert check(repair=True)["repaired"] == 1

    agent.refresh_from_db()
    assert (agent.name, agent.head_version.version_number) == ("Written by hand", 3)
    assert [version.snapshot["name"] for version in agent.versions.all()] == ["Written by hand", "Porter", "Concierge"]
    assert check()["found"] == 0


def test_a_too_low_counter_is_raised(agent):
    write("agents_app_agent", agent, last_version_number=1)

    assert kinds(check(repair=True)) == {"counter"}

    agent.refresh_from_db()
    assert agent.last_version_number == 2
    assert check()["found"] == 0


def test_missing_pointers_are_set_to_the_last_live_and_newest_version(agent):
    agent.versions.get(version_number=1).activate()
    write("agents_app_agent", agent, active_version_id=None, head_version_id=None)

    assert kinds(check(repair=True)) == {"active_missing", "head_missing"}

    agent.refresh_from_db()
    assert agent.active_version.version_number == 1
    assert check()["found"] == 0


def test_a_pointer_to_a_version_of_another_agent_is_repaired(agent):
    other = AgentFactory(id="other")
    write("agents_app_agent", agent, active_version_id=as_stored(other.active_version_id))

    assert "active_foreign" in kinds(check(repair=True))

    agent.refresh_from_db()
    assert agent.active_version.agent_id == "porter"
    assert check()["found"] == 0


def test_a_missing_activation_is_added(agent):
    Activation.objects.filter(agent=agent, to_version_number=2).delete()

    assert kinds(check(repair=True)) == {"activation"}

    newest = agent.activations.first()
    assert (newest.from_version_number, newest.to_version_number) == (1, 2)
    assert check()["found"] == 0


def clear_column(rows):
    rows.delete()


def rename(rows):
    rows.update(name="Another")


def misfile(rows):
    rows.update(metadata={"team": True}, agents=["x"])


def reword(rows):
    rows.update(words="other words")


@pytest.mark.parametrize("spoil", [clear_column, rename, misfile, reword], ids=lambda spoil: spoil.__name__)
def test_an_agent_missing_in_the_index_is_indexed(agent, spoil):
    with change(publish=False):
        agent.edit({"instructions": "Open the door.", "metadata": {"team": 1, "rate": 0.5}})
    spoil(AgentIndex.objects.filter(agent=agent, is_head=True))
    before = list(agent.versions.values())

    assert kinds(check()) == {"index"}
    assert check(repair=True)["repaired"] == 1

    assert check()["found"] == 0
    heads = AgentIndex.objects.filter(is_head=True)
    assert [row.agent for row in heads.search("open the door").with_metadata({"team": 1})] == [agent]
    assert [row.is_live for row in agent.index.order_by("pk")] == [True, False]
    assert list(agent.versions.values()) == before


@pytest.mark.sqlite_only
def test_a_missing_word_index_is_rebuilt(agent):
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {FTS_TABLE}_in")
        cursor.execute(f"DROP TRIGGER {FTS_TABLE}_out")
    agent.edit({"instructions": "Carry the luggage."})
    AgentIndex.objects.filter(agent=agent).delete()
    agent.refresh_from_db()

    assert kinds(check(repair=True)) == {"search", "index"}

    assert [row.agent for row in AgentIndex.objects.search("luggage")] == [agent]
    assert check()["found"] == 0


def test_a_snapshot_with_a_wrong_hash_is_reported_and_unchanged(agent):
    other = AgentFactory(id="other")
    version = agent.versions.get(version_number=1)
    write("versions_app_agentversion", other, snapshot=version.snapshot_text + " ")

    result = check(repair=True)

    assert (kinds(result), result["repaired"]) == ({"hash"}, 0)
    assert other.versions.get().snapshot_text.endswith(" ")


def test_a_version_that_cannot_be_read_keeps_back_no_other_repair(agent):
    broken = AgentFactory(id="broken")
    write("versions_app_agentversion", broken, snapshot="{")
    write("agents_app_agent", broken, name="Written by hand")
    write("agents_app_agent", agent, last_version_number=1)

    result = check(repair=True)

    assert (result["counts"], result["repaired"]) == ({"row": 1, "hash": 1, "counter": 1}, 1)
    agent.refresh_from_db()
    assert agent.last_version_number == 2


def test_a_version_based_on_a_later_one_is_reported(agent):
    write("versions_app_agentversion", agent, based_on=7)

    assert kinds(check()) == {"based_on"}


def test_a_missing_trigger_is_created():
    drop_trigger()

    assert kinds(check()) == {"trigger"}
    assert check(repair=True)["repaired"] == 1
    assert triggers.is_trigger_installed()


def test_an_agent_without_versions_gets_its_first(agent):
    write("agents_app_agent", agent, active_version_id=None, head_version_id=None)
    AgentVersion.objects.all().delete()

    check(repair=True)

    agent.refresh_from_db()
    assert (agent.active_version.version_number, agent.name) == (3, "Porter")
    assert check()["found"] == 0


def test_the_command_reports_faults_and_fails_until_they_are_repaired(agent):
    write("agents_app_agent", agent, last_version_number=1)
    output = StringIO()

    with pytest.raises(CommandError, match="1 faults remain"):
        call_command("check_history", stdout=output)
    call_command("check_history", "--repair", stdout=output)
    call_command("check_history", stdout=output)

    assert "fault: porter: The version counter is 1, but version 2 exists." in output.getvalue()
    assert "repaired: porter" in output.getvalue()


def test_the_check_continues_where_a_dead_worker_stopped(agent):
    AgentFactory(id="zeta")
    done = {"after": "porter", "versions": 2, "counts": {}, "repaired": 0, "faults": []}
    job = Job.objects.create(kind=CHECK_HISTORY, cursor=done, done=1)

    result = runner.run_claimed(str(job.pk)).result

    assert (result["agents"], result["versions"]) == (2, 3)
