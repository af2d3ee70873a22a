"""Concurrent writers of one agent, each with its own database connection."""

import time
from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError, Event

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, connections, transaction

from agentcms.wire.canonical import sha256_hex
from agents_app.configuration import sub_agents
from agents_app.configuration.schema import FIELDS
from agents_app.editing.change_context import change
from agents_app.editing.locking import lock_agent_for
from agents_app.models import Agent
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, UserFactory, member
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db(transaction=True)

CLIENTS, EDITS = 32, 20


@pytest.fixture
def without_pruning(settings):
    """Raise the limit, so that nothing is pruned."""
    settings.AGENT_VERSION_LIMIT = 10_000


def check_agent(agent_id="shared"):
    """Check the invariants of the agent and return it."""
    agent = Agent.objects.with_versions().get(pk=agent_id)
    assert agent.head_version.agent_id == agent.active_version.agent_id == agent_id
    assert sha256_hex(agent.snapshot_text) == agent.head_version.snapshot_hash
    moves = list(agent.activations.order_by("pk").values_list("from_version_id", "to_version_id"))
    assert [move[0] for move in moves] == [None, *[move[1] for move in moves[:-1]]]
    assert moves[-1][1] == agent.active_version_id
    return agent


def numbers(agent):
    return list(agent.versions.order_by("version_number").values_list("version_number", flat=True))


def failures(answers):
    return [answer for answer in answers if isinstance(answer, Exception)]


def edit_often(client):
    """Edit repeatedly. Return the text of each edit by version number."""
    texts = {}
    for number in range(EDITS):
        text = f"{client}/{number}"
        texts[Agent.objects.get(pk="shared").edit({"description": text}).version_number] = text
        connection.close()  # as after a request: there are more writers than pooled connections
    return texts


@pytest.mark.usefixtures("without_pruning")
def test_each_concurrent_edit_returns_its_own_version():
    AgentFactory(id="shared")

    answers = run_concurrently([partial(edit_often, client) for client in range(CLIENTS)])

    agent = check_agent()
    assert failures(answers) == []
    assert numbers(agent) == list(range(1, 2 + CLIENTS * EDITS))
    answered = {number: text for answer in answers for number, text in answer.items()}
    stored = {version.version_number: version.snapshot["description"] for version in agent.versions.all()}
    assert stored == {1: "", **answered}
    assert agent.description == answered[agent.last_version_number]


@pytest.mark.usefixtures("without_pruning")
def test_concurrent_edits_of_different_fields_are_all_kept():
    AgentFactory(id="shared")
    values = {
        "name": "N",
        "description": "D",
        "instructions": "I",
        "memory": "m",
        "tools": ["t"],
        "metadata": {"k": 1},
    }
    values |= {"workflows": ["w"], "agents": ["a"], "integration_tools": ["p_t_x"], "default_options": {"o": 1}}
    values |= {"scorers": {"s": {}}, "model": {"provider": "p", "name": "n"}}
    values |= {"input_processors": [{"key": "i"}], "output_processors": [{"key": "o"}]}
    values |= {"background_tasks": {"disabled": True}}
    values |= {"mcp_clients": {"office": {"tools": {}}}, "knowledge": {"handbook": {"topK": 3}}}
    values |= {"durable": True, "request_context_schema": {"type": "object", "properties": {"guest": {}}}}
    rules = {"operator": "AND", "conditions": [{"field": "tier", "operator": "equals", "value": 1}]}
    values |= {"conditional": {"tools": [{"value": ["t"], "rules": rules}]}, "context_keys": ["tier"]}
    assert set(values) == set(FIELDS)

    answers = run_concurrently([partial(Agent(pk="shared").edit, {name: value}) for name, value in values.items()])

    assert failures(answers) == []
    assert {name: getattr(check_agent(), name) for name in values} == values


@pytest.mark.usefixtures("without_pruning")
def test_each_concurrent_restore_is_based_on_the_head_it_replaced():
    first = AgentFactory(id="shared").versions.get()

    answers = run_concurrently([AgentVersion.objects.get(pk=first.pk).restore for _ in range(16)])

    bases = check_agent().versions.order_by("version_number").values_list("based_on", flat=True)
    assert failures(answers) == []
    assert list(bases) == [None, *range(1, 17)]


def wait_for(other, seconds=10):
    """Wait until the other thread has started, and on PostgreSQL waits for the lock."""
    assert other.wait(seconds)
    if connection.vendor != "postgresql":  # SQLite waits at BEGIN, which cannot be observed
        return
    until = time.monotonic() + seconds
    while not is_waiting_for_lock():
        assert time.monotonic() < until, "The other thread never came to the lock."


def is_waiting_for_lock():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE NOT granted AND datname = current_database()"
        )
        return cursor.fetchone()[0]


@pytest.mark.parametrize("act", ["activate", "publishing edit", "discard"])
def test_a_writer_that_waited_for_a_draft_sees_the_draft(act):
    agent = AgentFactory(id="shared")
    agent.edit({"name": "Live"})
    locked, begun = Event(), Event()

    def draft():
        with transaction.atomic(), change(publish=False):
            Agent.objects.get(pk="shared").edit({"description": "Draft"})
            locked.set()
            wait_for(begun)

    def wait_and_act():
        assert locked.wait(10)
        begun.set()
        if act == "activate":
            return AgentVersion.objects.get(agent="shared", version_number=1).activate()
        if act == "discard":
            return AgentVersion.objects.discard_draft(Agent(pk="shared"))
        with change(publish=True):
            return Agent(pk="shared").edit({"name": "Amended"})

    answers = run_concurrently([draft, wait_and_act])

    assert failures(answers) == []
    assert answers[1]
    description = check_agent().head_version.snapshot["description"]
    assert description == ("" if act == "discard" else "Draft")
    assert check_agent().active_version.snapshot["description"] == ""


def test_a_writer_that_waited_for_an_activation_sees_the_live_version():
    user, agent = UserFactory(is_superuser=True), AgentFactory(id="shared")
    locked, begun = Event(), Event()

    def publish():
        with transaction.atomic():
            version = Agent.objects.get(pk="shared").edit({"description": "Newer"})
            locked.set()
            wait_for(begun)
            version.update_description(name="Release")
            return version

    def wait_and_hold():
        assert locked.wait(10)
        begun.set()
        with transaction.atomic():
            return lock_agent_for(user, "shared")

    published, waited = run_concurrently([publish, wait_and_hold])

    assert waited.active_version == waited.head_version == published != agent.active_version
    assert waited.active_version.snapshot["description"] == waited.description == "Newer"
    assert waited.active_version.name == "Release"


def test_concurrent_creates_of_one_id_create_one_agent():
    def create(name):
        return AgentFactory(id="shared", name=name).name

    answers = run_concurrently([partial(create, f"Agent {number}") for number in range(10)])

    assert [type(answer) for answer in failures(answers)] == [IntegrityError] * 9
    assert check_agent().name in answers
    assert numbers(check_agent()) == [1]


def act_if_possible(act):
    """Return False where the agent or version is deleted, or the version is live."""
    try:
        act()
    except (Agent.DoesNotExist, AgentVersion.DoesNotExist, ValidationError):
        return False
    return True


def version_at(position):
    """Return one of the current versions."""
    versions = list(AgentVersion.objects.filter(agent="shared"))
    if not versions:
        raise AgentVersion.DoesNotExist
    return versions[position % len(versions)]


def remove(position):
    agent = Agent.objects.get(pk="shared")
    spared = {agent.active_version_id, agent.head_version_id}
    for version in agent.versions.exclude(pk__in=spared)[:1]:
        version.remove()


ACTS = {
    "edit": lambda n: Agent.objects.get(pk="shared").edit({"description": f"{n}"}),
    "stale save": lambda n: Agent.objects.get(pk="shared").save(),
    "activate": lambda n: version_at(n).activate(),
    "restore": lambda n: version_at(n).restore(),
    "snapshot": lambda n: AgentVersion.objects.snapshot(Agent.objects.get(pk="shared")),
    "discard": lambda n: AgentVersion.objects.discard_draft(Agent.objects.get(pk="shared")),
    "remove": remove,
}


def repeat(act, times=15):
    return [act_if_possible(partial(act, number)) for number in range(times)]


def draft(number):
    with change(publish=False):
        Agent.objects.get(pk="shared").edit({"name": f"Draft {number}"})


def test_concurrent_actions_leave_valid_pointers_and_no_failure(settings):
    settings.AGENT_VERSION_LIMIT = 5  # every new version prunes one
    AgentFactory(id="shared")

    answers = run_concurrently([partial(repeat, act) for act in [*ACTS.values(), draft, draft]])

    agent = check_agent()
    assert failures(answers) == []
    assert len(numbers(agent)) <= 5
    assert agent.last_version_number >= max(numbers(agent))


def delete(number):
    Agent.objects.get(pk="shared").delete()
    AgentFactory(id="shared")


def test_an_agent_recreated_during_concurrent_actions_is_consistent(settings):
    settings.AGENT_VERSION_LIMIT = 5
    AgentFactory(id="shared")

    answers = run_concurrently([partial(repeat, act) for act in [*ACTS.values(), draft, delete]])

    assert failures(answers) == []
    assert numbers(check_agent())
    assert not AgentVersion.objects.exclude(agent="shared").exists()


def test_deleting_agents_in_bulk_deletes_concurrent_edits():
    for number in range(8):
        AgentFactory(id=f"a{number}")

    def edit(number):
        return [act_if_possible(partial(Agent(pk=f"a{number}").edit, {"name": f"{n}"})) for n in range(10)]

    answers = run_concurrently([partial(edit, number) for number in range(8)] + [Agent.objects.all().delete])

    assert failures(answers) == []
    assert not Agent.objects.exists()
    assert not AgentVersion.objects.exists()


def test_writers_of_different_agents_do_not_fail():
    for number in range(8):
        AgentFactory(id=f"a{number}")

    def edit(number):
        for n in range(10):
            Agent(pk=f"a{number}").edit({"name": f"{n}"})

    assert failures(run_concurrently([partial(edit, number) for number in range(8)])) == []
    assert [check_agent(f"a{number}").last_version_number for number in range(8)] == [11] * 8


def test_a_thread_leaves_no_connection_open():
    AgentFactory(id="shared")

    run_concurrently([partial(Agent(pk="shared").edit, {"name": "A"})])

    assert connections["default"].in_atomic_block is False


def test_two_agents_that_name_each_other_at_the_same_moment_are_no_circle(monkeypatch):
    user, both_have_read = member("publisher"), Barrier(2)
    for agent_id in ("a", "b"):
        AgentFactory(id=agent_id)
    read_graph = sub_agents.reference_graph

    def read_and_wait(*arguments):
        graph = read_graph(*arguments)
        with suppress(BrokenBarrierError):  # the other one waits until this one has ended
            both_have_read.wait(0.5)
        return graph

    monkeypatch.setattr(sub_agents, "reference_graph", read_and_wait)

    def name(agent_id, other):
        with change(actor=user):
            Agent(pk=agent_id).edit({"agents": [other]})

    answers = run_concurrently([partial(name, "a", "b"), partial(name, "b", "a")])

    assert [type(error) for error in failures(answers)] == [sub_agents.CircularReference]
    assert sorted(Agent.objects.values_list("agents", flat=True)) in ([[], ["a"]], [[], ["b"]])
