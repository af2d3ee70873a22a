"""The trash: deleted agents are kept whole and restored with the same versions."""

import json
import zlib
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models.signals import post_delete
from django.utils import timezone

from agents_app.configuration.sub_agents import CircularReference
from agents_app.editing.archiving import archive_locked
from agents_app.editing.change_context import change
from agents_app.models import Agent, AgentIndex
from jobs_app.cleanup import CLEAN_UP
from jobs_app.runner import run_now
from tests.factories import AgentFactory, UserFactory
from versions_app import trash
from versions_app.integrity.check import CHECK_HISTORY
from versions_app.models import Activation, AgentVersion, DeletedAgent

pytestmark = pytest.mark.django_db

ODD = {"text": "é\u2028\u2029\x7f\n", "big": 2**63 - 1, "tiny": 5e-324, "list": [None, True, {}], "1e22": 1e22}


def create_history(agent_id="porter", author=None, **fields):
    """Return an agent with versions by an author, a draft, a pin, and several moves of live."""
    agent = AgentFactory(id=agent_id, metadata=ODD, **fields)
    with change(actor=author or UserFactory(), message="By a person"):
        for name in ("A", "B", "C"):
            agent.edit({"name": name})
        AgentVersion.objects.snapshot(agent, pinned=True)
        agent.versions.last().restore()
        agent.versions.get(version_number=2).remove()
    with change(publish=False):
        agent.edit({"name": "Draft", "instructions": "Zeile\r\n" * 3})
    return Agent.objects.get(pk=agent_id)


def rows(agent_id):
    """Return all rows of an agent, without the columns that a restore changes."""
    agents = Agent.objects.filter(pk=agent_id).values()
    return [
        [{name: value for name, value in row.items() if name not in ("revision", "updated_at")} for row in agents],
        list(AgentVersion.objects.filter(agent_id=agent_id).order_by("pk").values()),
        list(Activation.objects.filter(agent_id=agent_id).order_by("pk").values()),
        list(AgentIndex.objects.filter(agent_id=agent_id).order_by("words").values("is_live", "is_head", "words")),
    ]


def faults():
    return run_now(CHECK_HISTORY, {}).result["faults"]


def restore(agent_id="", **lookup):
    return trash.restore_locked(DeletedAgent.objects.get(**lookup), agent_id)


@pytest.mark.parametrize(
    "delete",
    [lambda agent: agent.delete(), lambda agent: Agent.objects.filter(pk=agent.pk).delete()],
    ids=["one", "a queryset"],
)
def test_a_deleted_agent_is_restored_whole(delete):
    create_history("earlier")
    agent = create_history()
    create_history("later")
    before, others = rows(agent.pk), [rows("earlier"), rows("later")]

    delete(agent)
    assert rows("porter") == [[], [], [], []]
    assert DeletedAgent.objects.get().version_count == len(before[1])
    restored = restore()

    assert rows("porter") == before
    assert [rows("earlier"), rows("later")] == others
    assert restored.revision == agent.revision + 1
    assert not DeletedAgent.objects.exists()
    assert faults() == []


def test_a_restored_agent_continues_its_version_numbers():
    agent = create_history()
    agent.delete()
    restored = restore()

    restored.edit({"name": "Next"})

    assert restored.head_version.version_number == agent.last_version_number + 1
    assert restored.activations.first().pk >= max(move.pk for move in restored.activations.all())
    assert faults() == []


def test_the_record_is_compressed_lines_of_rows():
    agent = create_history(instructions="Be brief. " * 5000)
    versions = agent.versions.count()
    agent.delete()

    deleted = DeletedAgent.objects.get()
    lines = zlib.decompress(bytes(deleted.record)).decode().split("\n")

    assert [json.loads(line)["model"] for line in lines[: versions + 1]] == [
        "agents_app.agent",
        *["versions_app.agentversion"] * versions,
    ]
    assert len(deleted.record) < 20_000
    assert (deleted.agent_key, deleted.name, deleted.version_count) == ("porter", "Draft", versions)


def test_the_id_is_free_at_once_and_starts_at_version_1():
    create_history().delete()

    again = AgentFactory(id="porter")

    assert again.head_version.version_number == 1


def test_a_taken_id_is_refused_and_nothing_changes():
    create_history().delete()
    AgentFactory(id="porter", name="Another")
    before = rows("porter")

    with pytest.raises(trash.AgentIDTaken, match="Another agent has the ID porter"):
        restore()

    assert rows("porter") == before
    assert DeletedAgent.objects.count() == 1


def test_an_agent_is_restored_under_another_id():
    before = create_history()
    versions = set(before.versions.values_list("pk", "version_number"))
    before.delete()
    AgentFactory(id="porter")

    restored = restore("night-porter")

    assert set(restored.versions.values_list("pk", "version_number")) == versions
    assert (Agent.objects.count(), faults()) == (2, [])
    assert AgentIndex.objects.search("night").values_list("agent", flat=True)[0] == "night-porter"


def test_several_agents_with_one_id_are_in_the_trash():
    for name in ("First", "Second"):
        AgentFactory(id="porter", name=name).delete()

    restore("porter", name="First")

    assert Agent.objects.get().name == "First"
    assert DeletedAgent.objects.get().name == "Second"


def test_versions_of_a_deleted_user_are_restored_without_the_user():
    author = UserFactory(username="ann")
    create_history(author=author).delete()
    author.delete()

    restored = restore()

    version = restored.versions.filter(author_name="ann").first()
    assert (version.author, version.author_name) == (None, "ann")


def test_an_archived_agent_comes_back_archived():
    agent = create_history()
    archive_locked(agent)
    agent.delete()

    assert restore().archived_at is not None


def test_a_circular_reference_made_meanwhile_is_refused():
    actor = UserFactory(is_superuser=True)
    AgentFactory(id="child")
    AgentFactory(id="parent", agents=["child"]).delete()
    Agent.objects.get(pk="child").edit({"agents": ["parent"]})

    with change(actor=actor), pytest.raises(CircularReference):
        restore()


def test_restored_versions_stay_immutable():
    create_history().delete()
    version = restore().versions.first()

    with pytest.raises(Exception, match="never changes"):
        AgentVersion._base_manager.filter(pk=version.pk).update(snapshot_hash="x")


def test_the_trash_is_emptied_after_trash_days(settings):
    settings.TRASH_DAYS = 7
    for agent_id, days in (("old", 8), ("new", 6)):
        AgentFactory(id=agent_id).delete()
        deleted = DeletedAgent.objects.filter(agent_key=agent_id)
        deleted.update(deleted_at=timezone.now() - timedelta(days=days))

    result = run_now(CLEAN_UP, {}).result

    assert result["removed"]["deleted agents"] == 1
    assert DeletedAgent.objects.get().agent_key == "new"


def test_deleting_restoring_and_purging_are_in_the_log_of_the_admin():
    with change(actor=UserFactory(username="ann"), source="api"):
        AgentFactory(id="porter").delete()
        restore()
        Agent.objects.get().delete()
        trash.purge_locked(DeletedAgent.objects.get())

    entries = LogEntry.objects.order_by("pk").values_list("user__username", "object_id", "change_message")
    assert list(entries) == [
        ("ann", "porter", "Deleted (API)."),
        ("ann", "porter", "Restored from the trash (API)."),
        ("ann", "porter", "Deleted (API)."),
        ("ann", "porter", "Deleted for good (API)."),
    ]


def test_a_failed_deletion_leaves_no_record():
    def fail(**kwargs):
        raise ConnectionError

    agent = create_history()
    post_delete.connect(fail, sender=Agent)
    try:
        with pytest.raises(ConnectionError):
            agent.delete()
    finally:
        post_delete.disconnect(fail, sender=Agent)

    assert (Agent.objects.count(), DeletedAgent.objects.count()) == (1, 0)
