"""Deleting, restoring and archiving at the same time as edits."""

from functools import partial

import pytest
from django.db import transaction

from agents_app.editing.archiving import archive_locked, unarchive_locked
from agents_app.models import Agent
from jobs_app.runner import run_now
from tests.concurrency.test_writers import act_if_possible, failures
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory
from versions_app import trash
from versions_app.integrity.check import CHECK_HISTORY
from versions_app.models import AgentVersion, DeletedAgent

pytestmark = pytest.mark.django_db(transaction=True)


def restore(pk, agent_id=""):
    with transaction.atomic():
        return trash.restore_locked(DeletedAgent.objects.select_for_update().get(pk=pk), agent_id).pk


def faults():
    return run_now(CHECK_HISTORY, {}).result["faults"]


def test_one_of_several_restores_succeeds():
    AgentFactory(id="porter").delete()
    pk = DeletedAgent.objects.get().pk

    answers = run_concurrently([partial(restore, pk, agent_id) for agent_id in ("", "a", "b", "c")])

    assert [type(answer) for answer in answers].count(str) == 1
    assert sum(isinstance(answer, DeletedAgent.DoesNotExist) for answer in answers) == 3
    assert (Agent.objects.count(), AgentVersion.objects.count(), faults()) == (1, 1, [])


def test_a_restore_and_a_new_agent_with_the_same_id():
    AgentFactory(id="porter", name="Old").delete()
    pk = DeletedAgent.objects.get().pk

    answers = run_concurrently([partial(restore, pk), partial(AgentFactory, id="porter", name="New")])

    assert sum(isinstance(answer, Exception) for answer in answers) == 1
    assert Agent.objects.count() == 1
    assert DeletedAgent.objects.count() == (1 if Agent.objects.get().name == "New" else 0)
    assert faults() == []


def test_edits_during_deletions_and_restores_are_kept_or_refused():
    AgentFactory(id="porter")

    def edit_often():
        texts = map(str, range(20))
        return sum(act_if_possible(lambda: Agent(pk="porter").edit({"description": next(texts)})) for _ in range(20))

    def delete_and_restore():
        for _ in range(6):
            Agent.objects.get(pk="porter").delete()
            restore(DeletedAgent.objects.get().pk)

    answers = run_concurrently([edit_often, edit_often, delete_and_restore])

    assert failures(answers) == []
    agent = Agent.objects.get()
    numbers = sorted(agent.versions.values_list("version_number", flat=True))
    assert numbers == [*range(1, agent.last_version_number + 1)]
    assert agent.last_version_number <= answers[0] + answers[1] + 1
    assert faults() == []


def test_an_archived_agent_gets_no_version():
    AgentFactory(id="porter")

    def archive():
        with transaction.atomic():
            row = Agent.objects.get_locked("porter")
            archive_locked(row)
            return row.last_version_number

    def edit(number):
        return Agent(pk="porter").edit({"description": str(number)})

    archived, *edits = run_concurrently([archive, *(partial(edit, number) for number in range(6))])

    agent = Agent.objects.get()
    assert agent.last_version_number == archived
    assert archived - 1 == sum(not isinstance(answer, Exception) for answer in edits)
    with transaction.atomic():
        unarchive_locked(Agent.objects.get_locked("porter"))
    assert edit("after").version_number == archived + 1
    assert faults() == []
