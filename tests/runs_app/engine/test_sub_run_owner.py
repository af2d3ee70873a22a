"""The owner of child runs, whose agents may belong to another owner."""

import pytest
from django.urls import reverse

from runs_app.models import AgentRun
from tests.api_client import Caller
from tests.factories import AgentFactory, MembershipFactory, UserFactory, api_key, member
from tests.page_client import browser
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

SECRET = "The salary of Ada is 7"
PATHS = ["", "/events", "/stream"]


@pytest.fixture
def asker():
    return member("editor", "support")


@pytest.fixture
def child(asker):
    """Return the run of a shared sub-agent for an agent of the team support."""
    AgentFactory(id="helper", name="Helper", instructions="Help secretly.", model=DEMO)
    agent = AgentFactory(id="ours", owner_id="support", model=DEMO, agents=["helper"])
    return wait_for_end(start_run(agent, asker, f"Use agent-helper with {SECRET}")).children.get()


def test_a_child_run_belongs_to_the_owner_of_its_parent(child):
    assert (child.owner_id, child.agent_owner_id) == ("support", "")
    assert (child.parent.owner_id, child.parent.agent_owner_id) == ("support", "support")


def test_publishers_of_a_shared_sub_agent_do_not_read_what_a_team_asks(child):
    publisher = member("publisher", is_staff=True)
    caller, client = Caller(api_key(publisher)), browser(publisher)

    for path in PATHS:
        assert caller.get(f"/api/runs/{child.pk}{path}").status_code == 404
    assert caller.post("/api/agents/helper/observe", {"runId": str(child.pk)}).status_code == 404
    assert caller.post(f"/api/runs/{child.pk}/cancel").status_code == 404
    assert caller.get("/api/runs?children=true").body["total"] == 0
    for name in ("view", "answer", "stream"):
        assert client.get(reverse(f"runs:{name}", args=[child.pk])).status_code == 404
    assert str(child.pk) not in client.get(reverse("admin:runs_app_agentrun_changelist")).content.decode()
    assert client.get(reverse("admin:runs_app_agentrun_change", args=[child.pk])).status_code == 302


def test_a_child_run_is_read_like_its_parent(child, asker):
    for user in (asker, member("publisher", "support"), UserFactory(is_superuser=True)):
        caller = Caller(api_key(user))
        assert SECRET in str(caller.get(f"/api/runs/{child.pk}").body["messages"])
        assert caller.get(f"/api/runs/{child.pk}/events").status_code == 200
        assert caller.get("/api/runs?children=true").body["total"] == 2
    for user in (member("editor", "support"), member("publisher", "newsroom")):
        caller = Caller(api_key(user))
        assert caller.get(f"/api/runs/{child.pk}").status_code == 404
        assert caller.get("/api/runs?children=true").body["total"] == 0


def test_the_configuration_of_a_sub_agent_needs_a_role_for_its_owner(child):
    publisher = member("publisher", "support", is_staff=True)
    caller, client = Caller(api_key(publisher)), browser(publisher)
    address = reverse("runs:view", args=[child.pk])

    assert caller.get(f"/api/runs/{child.pk}").body["configuration"] is None
    page = client.get(address).content.decode()
    assert "Run of helper" in page
    assert 'id="configuration"' not in page
    MembershipFactory(user=publisher)
    assert caller.get(f"/api/runs/{child.pk}").body["configuration"]["name"] == "Helper"
    assert 'id="configuration"' in client.get(address).content.decode()


def test_a_sub_agent_uses_the_sub_agents_of_its_own_owner(asker):
    AgentFactory(id="theirs", owner_id="support", model=DEMO)
    AgentFactory(id="last", model=DEMO)
    AgentFactory(id="helper", model=DEMO, agents=["theirs", "last"])
    agent = AgentFactory(id="ours", owner_id="support", model=DEMO, agents=["helper"])

    run = wait_for_end(start_run(agent, asker, "Use agent-helper with Use agent-theirs and Use agent-last"))

    child = run.children.get()
    assert [warning["key"] for warning in child.warnings] == ["theirs"]
    assert [(last.agent_key, last.owner_id) for last in child.children.all()] == [("last", "support")]


def test_a_run_of_an_agent_in_code_belongs_to_the_team_that_started_it(asker):
    agent = AgentFactory(owner_id="support", model=DEMO, agents=["proofreader"])

    child = wait_for_end(start_run(agent, asker, "Use agent-proofreader with this")).children.get()

    assert (child.owner_id, child.agent_owner_id, child.agent) == ("support", "", None)
    assert AgentRun.objects.for_user(member("publisher")).count() == 0
