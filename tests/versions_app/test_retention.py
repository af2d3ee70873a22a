"""Retention of versions."""

from dataclasses import dataclass, field

import pytest
from django.db import transaction
from django.test import override_settings
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agents_app.editing.change_context import change
from agents_app.models import Agent
from tests.conftest import DRILL
from tests.factories import AgentFactory
from versions_app.models import Activation, AgentVersion
from versions_app.retention import delete_surplus, explain_retention

pytestmark = pytest.mark.django_db

LIMIT = 5


@pytest.fixture(autouse=True)
def limit(settings):
    settings.AGENT_VERSION_LIMIT = LIMIT


@pytest.fixture
def agent():
    return AgentFactory()


def edit(agent, times=1):
    for _ in range(times):
        agent.edit({"description": f"after version {agent.last_version_number}"})


def numbers(agent):
    return list(agent.versions.order_by("version_number").values_list("version_number", flat=True))


def version(agent, number):
    return agent.versions.get(version_number=number)


def test_every_version_up_to_the_limit_is_kept(agent):
    edit(agent, LIMIT - 1)

    assert numbers(agent) == [1, 2, 3, 4, 5]


def test_the_oldest_version_over_the_limit_is_deleted(agent):
    edit(agent, LIMIT)

    assert numbers(agent) == [2, 3, 4, 5, 6]


def test_a_pinned_version_is_kept(agent):
    version(agent, 1).update_description(pinned=True)

    edit(agent, 2 * LIMIT)

    assert numbers(agent) == [1, 8, 9, 10, 11]


def test_an_unpinned_version_is_deleted(agent):
    version(agent, 1).update_description(pinned=True)
    edit(agent, LIMIT)
    version(agent, 1).update_description(pinned=False)

    edit(agent)

    assert numbers(agent) == [3, 4, 5, 6, 7]


def test_the_live_version_is_kept_under_any_number_of_drafts(agent):
    with change(publish=False):
        edit(agent, 2 * LIMIT)

    assert numbers(agent) == [1, 8, 9, 10, 11]


def test_the_previous_live_version_is_kept_for_undo(agent):
    edit(agent)

    with change(publish=False):
        edit(agent, 2 * LIMIT)

    assert numbers(agent) == [1, 2, 10, 11, 12]
    agent.activations.first().undo()
    assert Agent.objects.get(pk=agent.pk).active_version.version_number == 1


def test_a_head_behind_newer_versions_is_kept(agent):
    with change(publish=False):
        edit(agent)
    with change(publish=True):
        for number in range(2 * LIMIT):
            agent.edit({"name": f"Amended {number}"})

    assert numbers(agent) == [2, 9, 10, 11, 12]
    assert Agent.objects.get(pk=agent.pk).head_version.version_number == 2


def test_all_pinned_versions_over_the_limit_are_kept(agent):
    for _ in range(2 * LIMIT):
        edit(agent)
        agent.versions.first().update_description(pinned=True)
    pinned = numbers(agent)

    edit(agent, 3)

    assert set(pinned[1:]) <= set(numbers(agent))


def test_a_smaller_limit_takes_effect_with_the_next_version(agent, settings):
    settings.AGENT_VERSION_LIMIT = 20
    edit(agent, 14)
    settings.AGENT_VERSION_LIMIT = LIMIT

    edit(agent)

    assert numbers(agent) == [12, 13, 14, 15, 16]


def test_pruning_is_rolled_back_with_the_save(agent):
    edit(agent, LIMIT - 1)

    with transaction.atomic():
        edit(agent)
        transaction.set_rollback(True)

    assert numbers(agent) == [1, 2, 3, 4, 5]


def test_the_versions_of_other_agents_are_not_counted(agent):
    other = AgentFactory()
    edit(other, LIMIT)

    edit(agent, LIMIT - 1)

    assert len(numbers(agent)) == len(numbers(other)) == LIMIT


# --- Against a specification in plain Python


@dataclass
class State:
    """The number of versions, the pinned ones and the pointers of an agent."""

    count: int
    pinned: set[int] = field(default_factory=set)
    live: int = 1
    head: int = 1
    before: int | None = None

    def remaining_numbers(self, limit: int) -> list[int]:
        numbers = list(range(1, self.count + 1))
        spared = self.pinned | {self.live, self.head, self.before}
        unspared = [number for number in numbers if number not in spared]
        gone = unspared[: max(len(numbers) - limit, 0)]
        return [number for number in numbers if number not in gone]


@st.composite
def agent_states(draw):
    count = draw(st.integers(1, 12))
    number = st.integers(1, count)
    return State(count, draw(st.sets(number)), draw(number), draw(number), draw(st.none() | number))


def build(agent_id, state):
    """Create an agent in this state, even if no sequence of edits leads to it."""
    agent = AgentFactory(id=agent_id)
    for _ in range(state.count - 1):
        AgentVersion.objects.snapshot(agent)
    by_number = {version.version_number: version for version in agent.versions.all()}
    agent.versions.filter(version_number__in=state.pinned).update(pinned=True)
    Agent.objects.filter(pk=agent_id).update_unguarded(
        active_version=by_number[state.live], head_version=by_number[state.head]
    )
    agent.activations.all().delete()
    old = by_number.get(state.before)
    Activation.objects.create(
        agent=agent,
        from_version_id=old and old.pk,
        from_version_number=state.before,
        to_version_id=by_number[state.live].pk,
        to_version_number=state.live,
    )
    return agent


@hypothesis_settings(max_examples=400 if DRILL else 60, deadline=None)
@given(agent_states(), agent_states(), st.integers(1, 12))
def test_retention_matches_the_reference_model(first, second, keep):
    with transaction.atomic(), override_settings(AGENT_VERSION_LIMIT=100):
        agents = [build("first", first), build("second", second), build("other", first)]
        expected = [
            (agent, number) for agent, number, why in explain_retention(["first", "second"], keep) if why != "surplus"
        ]

        deleted = delete_surplus(["first", "second"], keep)

        remaining = [numbers(agent) for agent in agents]
        assert remaining == [
            first.remaining_numbers(keep),
            second.remaining_numbers(keep),
            list(range(1, first.count + 1)),
        ]
        assert deleted == first.count + second.count - len(remaining[0]) - len(remaining[1])
        assert expected == [("first", number) for number in remaining[0]] + [
            ("second", number) for number in remaining[1]
        ]
        transaction.set_rollback(True)
