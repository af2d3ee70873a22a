"""Retention rules of owners."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from jobs_app import runner
from jobs_app.models import Job
from tests.factories import AgentFactory
from versions_app.integrity import triggers
from versions_app.models import AgentVersion
from versions_app.models.retention_rule import RetentionRule
from versions_app.pruning import PRUNE

pytestmark = pytest.mark.django_db


def agent_with(versions, owner_id=""):
    agent = AgentFactory(owner_id=owner_id)
    for number in range(1, versions):
        agent.edit({"instructions": f"Edit {number}"})
    return agent


def numbers(agent):
    return sorted(agent.versions.values_list("version_number", flat=True))


def prune(**parameters):
    return runner.run_claimed(str(Job.objects.create(kind=PRUNE, parameters=parameters).pk)).result


def set_age(agent, up_to, days):
    """Set the times of versions back, which needs the trigger to be removed."""
    with connection.cursor() as cursor:
        on = f" ON {triggers.TABLE}" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER {triggers.TRIGGER_NAME}{on}")
    old = agent.versions.filter(version_number__lte=up_to)
    QuerySet.update(old, created_at=timezone.now() - timedelta(days=days))
    triggers.install_trigger("default")


def test_pruning_follows_the_rule_of_each_owner(settings):
    settings.AGENT_VERSION_LIMIT = 8
    RetentionRule.objects.create(owner_id="north", versions=5)
    RetentionRule.objects.create(owner_id="south", versions=100)
    north, south, others = agent_with(8, "north"), agent_with(12, "south"), agent_with(8)

    prune()

    assert numbers(north) == [4, 5, 6, 7, 8]
    assert numbers(south) == list(range(1, 13))
    assert numbers(others) == list(range(1, 9))


def test_a_save_deletes_no_more_than_the_rule_allows(settings):
    settings.AGENT_VERSION_LIMIT = 5
    RetentionRule.objects.create(owner_id="south", versions=10)

    assert len(numbers(agent_with(12, "south"))) == 10
    assert len(numbers(agent_with(12))) == 5


def test_old_versions_are_deleted_except_protected_ones(settings):
    RetentionRule.objects.create(owner_id="north", days=30)
    north, others = agent_with(6, "north"), agent_with(6)
    north.versions.filter(version_number=2).update(pinned=True)
    for agent in (north, others):
        set_age(agent, up_to=6, days=31)

    foretold = prune(dryRun=True)
    result = prune()

    assert numbers(north) == [2, 5, 6]
    assert numbers(others) == [1, 2, 3, 4, 5, 6]
    assert foretold["surplus"] == result["removed"] == 3


def test_the_rule_of_an_owner_replaces_the_global_age(settings):
    settings.AGENT_VERSION_DAYS = 10
    RetentionRule.objects.create(owner_id="north", days=90)
    north, others = agent_with(6, "north"), agent_with(6)
    for agent in (north, others):
        set_age(agent, up_to=3, days=31)

    prune()

    assert numbers(north) == [1, 2, 3, 4, 5, 6]
    assert numbers(others) == [4, 5, 6]


def test_a_rule_with_too_many_days_keeps_everything():
    RetentionRule.objects.create(owner_id="north", days=2_000_000)
    RetentionRule.objects.create(owner_id="south", days=30)
    north, south = agent_with(6, "north"), agent_with(6, "south")
    for agent in (north, south):
        set_age(agent, up_to=3, days=3650)

    prune()

    assert (numbers(north), numbers(south)) == ([1, 2, 3, 4, 5, 6], [4, 5, 6])


def test_a_rule_has_a_minimum_number_of_versions():
    with pytest.raises(ValidationError):
        RetentionRule(owner_id="north", versions=4).full_clean()


def test_an_owner_has_one_rule():
    RetentionRule.objects.create(owner_id="north", versions=10)

    with pytest.raises(IntegrityError), transaction.atomic():
        RetentionRule.objects.create(owner_id="north", versions=20)


def test_the_trigger_exists_after_changing_times():
    agent = agent_with(2)
    set_age(agent, 1, 1)

    with pytest.raises(IntegrityError), transaction.atomic():
        QuerySet.update(AgentVersion.objects.all(), version_number=9)
