"""Resolution of agents to configurations, and the cache of built agents."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access_app.role import Role
from agents_app.editing.archive_guard import AgentArchived
from agents_app.editing.archiving import archive_locked
from agents_app.editing.change_context import change
from agents_app.models import Agent
from agents_app.registry import Entry, Kind, registry
from runs_app.engine.start.run import start_run
from runs_app.models import ModelProvider
from runs_app.resolution import ResolvedAgent, stored_agents
from tests.factories import AgentFactory, member
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    """Return an agent with live version 1 and draft version 2."""
    agent = AgentFactory(id="concierge", instructions="Greet guests.", model={"provider": "demo", "name": "echo"})
    with change(publish=False):
        agent.edit({"instructions": "Greet guests by name."})
    return agent


def resolved_instructions(**selection):
    resolved = stored_agents.get("concierge", **selection)
    return resolved.configuration["instructions"], resolved.target, resolved.version_number


def test_the_live_version_runs(agent):
    assert resolved_instructions() == ("Greet guests.", "live", 1)


def test_the_draft_runs_on_request(agent):
    assert resolved_instructions(status="draft") == ("Greet guests by name.", "draft", 2)


def test_a_version_runs_by_number_or_id(agent):
    version = agent.versions.get(version_number=2)

    assert (
        resolved_instructions(version_number=2)
        == resolved_instructions(version_id=version.pk)
        == resolved_instructions(version_id=str(version.pk))
    )
    assert resolved_instructions(version_number=2) == ("Greet guests by name.", "version", 2)


def test_raw_returns_the_configuration(agent):
    assert stored_agents.get("concierge", raw=True) == agent.active_version.snapshot


def test_the_result_names_its_version(agent):
    resolved = stored_agents.get("concierge")

    assert (resolved.id, resolved.name, resolved.owner_id, resolved.source) == ("concierge", "Concierge", "", "stored")
    assert resolved.version_id == agent.active_version_id


def test_unsaved_text_can_run(agent):
    configuration = {**agent.active_version.snapshot, "name": "Porter", "instructions": "Carry bags."}

    resolved = ResolvedAgent.unsaved(agent, configuration)

    assert (resolved.name, resolved.target, resolved.version_id) == ("Porter", "unsaved", None)
    assert resolved.build().agent.name == "Porter"


def test_an_agent_in_code_is_found_by_key():
    resolved = stored_agents.get("proofreader")

    assert (resolved.source, resolved.target, resolved.version_id) == ("code", "code", None)
    assert resolved.configuration["model"] == {"provider": "demo", "name": "echo"}


def test_a_stored_agent_takes_precedence_over_one_in_code():
    AgentFactory(id="proofreader", name="Our own")

    assert stored_agents.get("proofreader").source == "stored"


def test_a_version_of_another_agent_is_not_found(agent):
    other = AgentFactory(id="porter")

    with pytest.raises(AgentVersion.DoesNotExist):
        stored_agents.get("concierge", version_id=other.active_version_id)


@pytest.mark.parametrize(
    "selection",
    [{"version_number": 9}, {"version_number": 10**30}, {"version_id": "no id"}, {"version_id": "0"}],
    ids=["number", "huge number", "text", "digit"],
)
def test_a_missing_version_raises(agent, selection):
    with pytest.raises(AgentVersion.DoesNotExist):
        stored_agents.get("concierge", **selection)


def test_an_agent_in_code_has_no_versions():
    with pytest.raises(AgentVersion.DoesNotExist, match="is defined in code"):
        stored_agents.get("proofreader", version_id=uuid4())


def test_a_missing_agent_raises():
    with pytest.raises(Agent.DoesNotExist):
        stored_agents.get("nobody")


def test_a_user_finds_visible_agents_only(agent):
    AgentFactory(id="secret", owner_id="press")
    viewer = member(Role.VIEWER)

    assert stored_agents.get("concierge", user=viewer).id == "concierge"
    with pytest.raises(Agent.DoesNotExist):
        stored_agents.get("secret", user=viewer)
    assert [listed.id for listed in stored_agents.list(viewer)] == ["concierge", "proofreader"]


def test_code_finds_every_agent(agent):
    AgentFactory(id="secret", owner_id="press")

    assert {listed.id for listed in stored_agents.list()} == {"concierge", "secret", "proofreader"}
    assert {listed.version_number for listed in stored_agents.list(status="draft")} == {1, 2, None}


def test_sub_agents_belong_to_the_owner_or_the_shared_space(agent):
    AgentFactory(id="clerk", owner_id="press")

    assert stored_agents.sub_agent("concierge", "press").id == "concierge"
    assert stored_agents.sub_agent("clerk", "press").id == "clerk"
    assert stored_agents.sub_agent("proofreader", "press").source == "code"
    with pytest.raises(Agent.DoesNotExist):
        stored_agents.sub_agent("clerk", "support")


# --- What is kept


def test_a_built_agent_is_cached_for_the_next_run(agent):
    assert stored_agents.get("concierge").build() is stored_agents.get("concierge").build()
    assert stored_agents.get("concierge", status="draft").build() is not stored_agents.get("concierge").build()


def test_a_published_version_runs_at_once(agent):
    before = stored_agents.get("concierge").build()

    agent.versions.get(version_number=2).activate()

    assert stored_agents.get("concierge").build() is not before
    assert resolved_instructions()[2] == 2


def test_given_versions_and_unsaved_text_are_not_cached(agent):
    by_version = [stored_agents.get("concierge", version_number=1).build() for _ in range(2)]
    unsaved = [ResolvedAgent.unsaved(agent, agent.active_version.snapshot).build() for _ in range(2)]

    assert len({id(built) for built in (*by_version, *unsaved)}) == 4


def test_registering_an_entry_invalidates_the_cached_agent(agent):
    before = stored_agents.get("concierge").build()

    registry.add(Entry(Kind.TOOL, "new-tool", "New"))

    assert stored_agents.get("concierge").build() is not before


def test_changing_a_provider_invalidates_the_cached_agent(agent):
    before = stored_agents.get("concierge").build()

    ModelProvider.objects.create(key="house", title="House", base_url="https://models.example.org")

    assert stored_agents.get("concierge").build() is not before


def test_adding_or_removing_a_sub_agent_invalidates_the_cached_agent():
    AgentFactory(id="boss", agents=["clerk"])
    alone = stored_agents.get("boss").build()

    clerk = AgentFactory(id="clerk")
    helped = stored_agents.get("boss").build()
    clerk.delete()

    assert [warning.key for warning in alone.warnings] == ["clerk"]
    assert helped.warnings == ()
    assert stored_agents.get("boss").build() is alone


def test_adding_or_removing_a_scorer_invalidates_the_cached_agent(db, monkeypatch):
    scorers = {}
    monkeypatch.setitem(registry.staff_entries, Kind.SCORER, lambda: scorers)
    monkeypatch.setitem(registry.staff_revisions, Kind.SCORER, lambda: str([*scorers]))
    AgentFactory(id="judged", scorers={"polite": {}})
    alone = stored_agents.get("judged").build()

    scorers["polite"] = Entry(Kind.SCORER, "polite", "Polite")
    scored = stored_agents.get("judged").build()
    scorers.clear()

    assert [warning.key for warning in alone.warnings] == ["polite"]
    assert scored.warnings == ()
    assert stored_agents.get("judged").build() is alone


def test_a_cached_agent_takes_no_query(agent):
    stored = stored_agents.get("concierge")
    stored.build()

    with CaptureQueriesContext(connection) as queries:
        stored.build()

    assert len(queries) == 0


def test_an_archived_agent_is_neither_listed_nor_resolved(agent):
    archive_locked(agent)

    assert "concierge" not in [resolved.id for resolved in stored_agents.list()]
    for selection in ({}, {"status": "draft"}, {"version_number": 1}, {"raw": True}):
        with pytest.raises(AgentArchived, match="Agent concierge is archived"):
            stored_agents.get("concierge", **selection)


def test_an_archived_agent_hides_the_one_in_code_with_its_id():
    archive_locked(AgentFactory(id="proofreader"))

    assert "proofreader" not in [resolved.id for resolved in stored_agents.list()]


def test_an_agent_that_is_archived_meanwhile_starts_no_run(agent):
    editor, resolved = member(Role.EDITOR), stored_agents.get("concierge")
    archive_locked(agent)

    with pytest.raises(AgentArchived):
        start_run(resolved, user=editor, messages="Hi")
