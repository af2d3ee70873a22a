"""Random sequences of actions on two agents, compared with the reference model."""

from copy import deepcopy

import pytest
from django.core.exceptions import ValidationError
from django.test import override_settings
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agentcms.wire.canonical import canonical, sha256_hex
from agents_app.configuration import schema
from agents_app.editing.change_context import change
from agents_app.models import Agent, AgentIndex
from agents_app.models.search_index import index_columns
from tests.conftest import DRILL
from tests.factories import AgentFactory
from tests.versions_app.specification import LIMIT, History
from versions_app.models import AgentVersion, CannotUndo

AGENTS = ("left", "right")
agent_ids = st.sampled_from(AGENTS)
publishing = st.sampled_from([None, True, False])
fields = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["Concierge", "Porter"]),
        "description": st.sampled_from(["", "é", "🙂\n"]),
        "memory": st.sampled_from([None, "last-messages"]),
        "tools": st.sampled_from([[], ["calculator"], ["calculator", "word-count"], ["word-count", "calculator"]]),
        "metadata": st.sampled_from([{}, {"k": 1}, {"k": 1.0}, {"k": True}, {"k": "1"}, {"k": 1, "l": [None, 1e22]}]),
    },
).filter(bool)


class AgentsAndHistories(RuleBasedStateMachine):
    """A state machine whose rules change the reference model and the database alike."""

    def __init__(self) -> None:
        super().__init__()
        Agent.objects.all().delete()
        self.histories: dict[str, History] = {}
        self.stale: dict[str, Agent] = {}
        for agent_id in AGENTS:
            self.make(agent_id, {})

    # --- Help

    def make(self, agent_id, changes):
        agent = AgentFactory(id=agent_id, **changes)
        self.histories[agent_id] = History()
        self.histories[agent_id].create(schema.to_snapshot(vars(agent)))
        self.stale[agent_id] = Agent.objects.get(pk=agent_id)

    def here(self, agent_id):
        return self.histories[agent_id], Agent.objects.get(pk=agent_id)

    def pick(self, agent_id, data):
        """Return an existing number and its version."""
        history, _ = self.here(agent_id)
        number = data.draw(st.sampled_from(sorted(history.versions)), label="version")
        return history, number, AgentVersion.objects.get(agent_id=agent_id, version_number=number)

    # --- Acts

    @rule(agent_id=agent_ids, changes=fields, publish=publishing)
    def save(self, agent_id, changes, publish):
        history, agent = self.here(agent_id)
        for name, value in deepcopy(changes).items():
            setattr(agent, name, value)
        with change(publish=publish):
            agent.save()
        history.save({**history.head_snapshot, **schema.to_wire_dict(changes)}, publish)

    @rule(agent_id=agent_ids, publish=publishing)
    def save_unchanged(self, agent_id, publish):
        history, agent = self.here(agent_id)
        with change(publish=publish):
            agent.save()
        history.save(history.head_snapshot, publish)

    @rule(agent_id=agent_ids)
    def keep_a_copy(self, agent_id):
        self.stale[agent_id] = Agent.objects.get(pk=agent_id)

    @rule(agent_id=agent_ids, changes=fields, named=st.booleans())
    def save_a_stale_copy(self, agent_id, changes, named):
        history, _ = self.here(agent_id)
        stale = self.stale[agent_id]
        for name, value in deepcopy(changes).items():
            setattr(stale, name, value)
        stale.save(update_fields=list(changes) if named else None)
        written = {name: getattr(stale, name) for name in (changes if named else schema.FIELDS)}
        history.save(schema.to_snapshot(written, history.head_snapshot), None)

    @rule(agent_id=agent_ids, changes=fields, publish=publishing)
    def edit(self, agent_id, changes, publish):
        history, agent = self.here(agent_id)
        with change(publish=publish):
            agent.edit(deepcopy(changes))
        history.edit(schema.to_wire_dict(changes), publish)

    @rule(agent_id=agent_ids, data=st.data())
    def activate(self, agent_id, data):
        history, number, version = self.pick(agent_id, data)
        version.activate()
        history.activate(number)

    @rule(agent_id=agent_ids, data=st.data(), publish=publishing)
    def restore(self, agent_id, data, publish):
        history, number, version = self.pick(agent_id, data)
        with change(publish=publish):
            version.restore()
        history.restore(number, publish)

    @rule(agent_id=agent_ids, pinned=st.booleans())
    def snapshot(self, agent_id, pinned):
        history, agent = self.here(agent_id)
        AgentVersion.objects.snapshot(agent, pinned)
        history.snapshot(pinned)

    @rule(agent_id=agent_ids)
    def discard_draft(self, agent_id):
        history, agent = self.here(agent_id)
        AgentVersion.objects.discard_draft(agent)
        history.discard_draft()

    @rule(agent_id=agent_ids, data=st.data())
    def remove(self, agent_id, data):
        history, number, version = self.pick(agent_id, data)
        if history.remove(number):
            version.remove()
        else:
            with pytest.raises(ValidationError):
                version.remove()

    @rule(agent_id=agent_ids, data=st.data(), pinned=st.booleans())
    def pin(self, agent_id, data, pinned):
        history, number, version = self.pick(agent_id, data)
        version.update_description(pinned=pinned)
        history.pin(number, pinned)

    @rule(agent_id=agent_ids)
    def undo(self, agent_id):
        history, agent = self.here(agent_id)
        newest = agent.activations.first()
        if history.undo():
            newest.undo()
        else:
            with pytest.raises(CannotUndo):
                newest.undo()

    @rule(agent_id=agent_ids, owner=st.sampled_from(["", "bar"]))
    def change_owner(self, agent_id, owner):
        history, agent = self.here(agent_id)
        agent.change_owner(owner)
        history.owner = owner

    @rule(agent_id=agent_ids, changes=fields)
    @precondition(lambda self: any(history.counter > 3 for history in self.histories.values()))
    def delete_and_create_again(self, agent_id, changes):
        Agent.objects.get(pk=agent_id).delete()
        self.make(agent_id, changes)

    # --- What must hold after each

    @invariant()
    def the_rows_are_as_specified(self):
        for agent in Agent.objects.with_versions():
            history = self.histories[agent.pk]
            assert (agent.head_version.version_number, agent.active_version.version_number) == (
                history.head,
                history.live,
            )
            assert agent.snapshot_text == canonical(history.head_snapshot)
            assert sha256_hex(agent.snapshot_text) == agent.head_version.snapshot_hash
            assert (agent.last_version_number, agent.owner_id) == (history.counter, history.owner)
            assert agent.has_draft == history.has_draft

    @invariant()
    def the_versions_are_as_specified(self):
        for agent_id, history in self.histories.items():
            versions = AgentVersion.objects.filter(agent_id=agent_id).order_by("version_number")
            assert [
                (
                    version.version_number,
                    version.snapshot_text,
                    version.based_on,
                    version.pinned,
                    tuple(version.changed_fields),
                )
                for version in versions
            ] == [
                (version.number, version.text, version.based_on, version.pinned, version.changed)
                for _, version in sorted(history.versions.items())
            ]

    @invariant()
    def every_move_of_live_is_noted(self):
        for agent_id, history in self.histories.items():
            moves = Agent(pk=agent_id).activations.order_by("pk")
            assert list(moves.values_list("from_version_number", "to_version_number")) == history.moves

    @invariant()
    def lists_and_search_look_at_live_and_at_head(self):
        for agent_id, history in self.histories.items():
            for state, number in (("is_live", history.live), ("is_head", history.head)):
                row = AgentIndex.objects.get(agent=agent_id, **{state: True})
                expected = index_columns(agent_id, history.versions[number].snapshot)
                assert canonical({name: getattr(row, name) for name in expected}) == canonical(expected)


@pytest.mark.django_db(transaction=True)
def test_any_sequence_of_actions_matches_the_reference_model():
    profile = settings(
        max_examples=400 if DRILL else 25,
        stateful_step_count=60 if DRILL else 25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=set(Phase) if DRILL else set(Phase) - {Phase.shrink},  # shrinking with a database takes minutes
    )
    with override_settings(AGENT_VERSION_LIMIT=LIMIT):
        run_state_machine_as_test(AgentsAndHistories, settings=profile)
