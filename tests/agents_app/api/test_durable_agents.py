"""The field of an agent that says whether its runs are durable."""

import pytest

from agents_app.configuration.display import config_sections
from agents_app.models import Agent
from tests.agent_exchange import export, import_file, record
from tests.api_client import Caller, agent_path
from tests.factories import AgentFactory, api_key, member
from versions_app.compare.change_summary import summarize_changes, summary_line
from versions_app.exchange.records import equals_version

pytestmark = pytest.mark.django_db

AGENT = agent_path()


@pytest.fixture
def caller():
    return Caller(api_key(member("publisher")))


@pytest.mark.parametrize("value", [True, False, {"maxSteps": 5}])
def test_it_is_stored_and_read_unchanged(caller, value):
    assert caller.create(durable=value).status_code == 201

    assert caller.get(AGENT).body["durable"] == value
    assert Agent.objects.get().durable == value
    assert caller.get(f"{AGENT}/versions").body["versions"][0]["snapshot"]["durable"] == value


def test_an_edit_and_a_restore_change_it(caller):
    first = caller.create().body["resolvedVersionId"]

    caller.patch(AGENT, {"durable": False})
    caller.patch(AGENT, {"durable": {"maxSteps": 3}})
    newest, middle, oldest = caller.get(f"{AGENT}/versions").body["versions"]
    restored = caller.post(f"{AGENT}/versions/{first}/restore")

    assert [version["snapshot"].get("durable") for version in (newest, middle)] == [{"maxSteps": 3}, False]
    assert "durable" not in oldest["snapshot"]
    assert restored.body["changedFields"] == ["durable"]
    assert "durable" not in caller.get(AGENT).body
    assert Agent.objects.get().durable is None


def test_an_agent_without_it_has_the_snapshot_of_earlier_releases():
    agent = AgentFactory()

    assert "durable" not in agent.snapshot_text
    assert equals_version(agent.resolved(), agent.active_version)


@pytest.mark.parametrize("value", ["yes", 1, 0, [], {}, {"maxSteps": 0}, {"maxSteps": True}, {"maxSteps": 1.5}])
def test_other_values_are_refused(caller, value):
    answer = caller.create(durable=value)

    message = "This must be true, false, null, or an object with maxSteps, a whole number above 0."
    assert (answer.status_code, answer.body["issues"]) == (400, [{"field": "durable", "message": message}])
    assert not Agent.objects.exists()


@pytest.mark.parametrize("value", [None, True, False, {"maxSteps": 5}])
def test_an_export_and_an_import_keep_it(caller, value):
    caller.create(durable=value)
    content, _ = export(caller)
    Agent.objects.all().delete()

    import_file(caller, content)

    assert Agent.objects.get().durable == value


def test_an_import_with_another_value_is_refused(caller):
    result = import_file(caller, [record("porter", durable="yes")])

    assert [row["action"] for row in result["records"]] == ["refuse"]
    assert "durable" in str(result["records"][0])
    assert not Agent.objects.exists()


def test_pages_show_it_also_where_it_is_false():
    (section,) = config_sections({"durable": False})

    assert (section.label, section.value) == ("Durable", "false")
    assert (
        summary_line(summarize_changes({"durable": True}, {"durable": {"maxSteps": 5}}))
        == "Durable true → at most 5 steps"
    )
