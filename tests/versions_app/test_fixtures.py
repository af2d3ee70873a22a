"""Loading fixtures, and recording changes made by SQL."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents_app.editing.change_context import change
from agents_app.models import Agent, AgentIndex
from tests.factories import AgentFactory, UserFactory
from tests.versions_app.integrity.test_check import write
from versions_app.models import Activation, AgentVersion

pytestmark = pytest.mark.django_db(transaction=True)

CAUGHT_UP = "Caught up with changes made outside the application"


@pytest.fixture
def agent():
    """Return an agent with a roll back, a restored and a pinned version and a draft."""
    with change(actor=UserFactory(username="ann")):
        agent = AgentFactory(id="a", owner_id="bar", metadata={"t": True, "one": 1, "f": 0.1, "s": "é🙂"})
        agent.edit({"tools": ["calculator"]})
        agent.versions.last().restore()
        AgentVersion.objects.snapshot(agent, pinned=True)
        agent.versions.get(version_number=2).activate()
    with change(publish=False):
        agent.edit({"description": "Draft"})
    return agent


def dumped(*labels):
    out = StringIO()
    call_command("dumpdata", *labels, stdout=out)
    return out.getvalue()


def load(text, tmp_path):
    path = tmp_path / "fixture.json"
    path.write_text(text)
    call_command("loaddata", str(path), verbosity=0)


def all_rows():
    """Return all rows without microseconds, which fixtures truncate."""
    return [
        [
            {key: value for key, value in row.items() if not key.endswith("_at")}
            for row in model.objects.order_by("pk").values()
        ]
        for model in (Agent, AgentVersion, Activation)
    ]


def record_versions():
    out = StringIO()
    call_command("record_versions", stdout=out)
    return out.getvalue().strip()


def test_loading_a_dump_restores_agents_with_their_history(agent, tmp_path):
    before, text = all_rows(), dumped("auth.user", "agents_app", "versions_app")
    call_command("flush", interactive=False, verbosity=0)
    assert all_rows() == [[], [], []]

    load(text, tmp_path)

    assert all_rows() == before
    assert record_versions() == "Recorded 0 versions."


def test_versions_continue_after_loading_a_dump(agent, tmp_path):
    text = dumped("auth.user", "agents_app", "versions_app")
    call_command("flush", interactive=False, verbosity=0)
    load(text, tmp_path)

    Agent.objects.get(pk="a").edit({"name": "Porter"})

    newest = AgentVersion.objects.filter(agent="a").first()
    assert (newest.version_number, newest.based_on, newest.changed_fields) == (6, 5, ["name"])


def test_loading_a_dump_twice_changes_nothing(agent, tmp_path):
    text = dumped("auth.user", "agents_app", "versions_app")
    call_command("flush", interactive=False, verbosity=0)
    load(text, tmp_path)
    before = all_rows()

    load(text, tmp_path)

    assert all_rows() == before


def test_agents_without_versions_get_their_first(agent, tmp_path):
    rows = json.loads(dumped("agents_app.agent"))
    for row in rows:
        row["fields"] |= {"active_version": None, "head_version": None, "last_version_number": 0}
    call_command("flush", interactive=False, verbosity=0)
    load(json.dumps(rows), tmp_path)

    assert record_versions() == "Recorded 1 version."

    caught_up = Agent.objects.get(pk="a")
    version = caught_up.versions.get()
    assert caught_up.active_version == caught_up.head_version == version
    assert (version.version_number, version.change_message) == (1, CAUGHT_UP)
    assert version.snapshot["description"] == "Draft"


def test_an_agent_loaded_without_index_is_indexed(agent, tmp_path):
    text = dumped("auth.user", "agents_app.agent", "versions_app")
    call_command("flush", interactive=False, verbosity=0)
    load(text, tmp_path)

    assert record_versions() == "Recorded 0 versions.\nReindexed 1 agent."

    assert record_versions() == "Recorded 0 versions."
    assert AgentIndex.objects.filter(is_head=True).search("greet").get().agent_id == "a"


@pytest.mark.parametrize(
    "fields",
    [{"model": {}}, {"model": ["x"]}, {"tools": 7}, {"input_processors": ["x", {}]}, {"scorers": "x", "memory": ""}],
    ids=json.dumps,
)
def test_an_invalid_row_gets_a_version_too(agent, tmp_path, fields):
    AgentVersion.objects.discard_draft(agent)
    rows = json.loads(dumped("agents_app.agent"))
    rows[0]["fields"] |= fields
    load(json.dumps(rows), tmp_path)

    assert record_versions() == "Recorded 1 version."

    assert AgentVersion.objects.filter(agent="a").first().snapshot != {}


def test_a_change_by_sql_gets_one_version(agent):
    AgentVersion.objects.discard_draft(agent)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agents_app_agent SET name = 'Changed by SQL' WHERE id = 'a'")

    assert [record_versions(), record_versions()] == ["Recorded 1 version.", "Recorded 0 versions."]

    newest = AgentVersion.objects.filter(agent="a").first()
    assert (newest.changed_fields, newest.change_message) == (["name"], CAUGHT_UP)
    assert Agent.objects.get(pk="a").active_version == newest


def test_a_version_that_cannot_be_read_keeps_back_no_other_agent():
    broken, other = AgentFactory(id="broken"), AgentFactory(id="other")
    write("versions_app_agentversion", broken, snapshot="{")
    for row in (broken, other):
        write("agents_app_agent", row, name="Changed by SQL")
    errors = StringIO()

    with pytest.raises(CommandError, match=r"1 agent left out\. Run check_history"):
        call_command("record_versions", stderr=errors)

    assert "Agent 'broken' was left out" in errors.getvalue()
    assert other.versions.first().snapshot["name"] == "Changed by SQL"


def test_a_change_by_sql_on_a_draft_stays_a_draft(agent):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agents_app_agent SET name = 'Changed by SQL' WHERE id = 'a'")

    record_versions()

    caught_up = Agent.objects.with_versions().get(pk="a")
    assert (caught_up.head_version.version_number, caught_up.active_version.version_number) == (6, 2)


def test_a_raw_save_creates_no_version(agent, tmp_path):
    rows = json.loads(dumped("agents_app.agent"))
    rows[0]["fields"]["name"] = "From a fixture"

    load(json.dumps(rows), tmp_path)

    assert Agent.objects.get(pk="a").name == "From a fixture"
    assert AgentVersion.objects.filter(agent="a").count() == 5
