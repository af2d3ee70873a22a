"""IDs that look like other ones: no new agent may have them, whatever creates it. Existing agents keep them."""

from urllib.parse import quote

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from access_app.role import Role
from agents_app.configuration import schema
from agents_app.models import Agent
from tests.agents_app.admin.test_admin_saving import admin_form
from tests.api_client import AGENTS, MODEL, Caller, agent_path
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.page_client import browser, editor_form
from versions_app.exchange.records import Record, import_record

pytestmark = pytest.mark.django_db

MIXED = "\N{CYRILLIC SMALL LETTER A}gent"
DECOMPOSED = "cafe\N{COMBINING ACUTE ACCENT}"
REASONS = {
    MIXED: f"Character 1, '{MIXED[0]}' (cyrillic small letter a), is among Latin letters. Use letters of one script.",
    DECOMPOSED: "Character 4 is not in the Unicode normal form NFKC. Write 'caf\N{LATIN SMALL LETTER E WITH ACUTE}'",
}
BODY = {"name": "Porter", "instructions": "", "model": MODEL}


@pytest.fixture
def caller():
    return Caller(api_key(member("publisher")))


@pytest.fixture
def staff():
    return browser(UserFactory(is_staff=True, is_superuser=True))


@pytest.fixture
def old_agent(monkeypatch):
    """Return an agent of an earlier release, which accepted its ID."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "reject_ambiguous_id", lambda agent_id: None)
        return AgentFactory(id=MIXED)


def text(answer):
    return answer.content.decode().replace("&#x27;", "'")


# --- Every way to create an agent


def create_over_the_api(agent_id, caller, staff):
    answer = caller.post(AGENTS, {"id": agent_id, **BODY})
    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, ["id"])
    return answer.body["issues"][0]["message"]


def duplicate_over_the_api(agent_id, caller, staff):
    AgentFactory(id="porter")
    answer = caller.post(agent_path("porter", "duplicate"), {"id": agent_id})
    assert answer.status_code == 400
    return answer.body["issues"][0]["message"]


def create_on_the_page(agent_id, caller, staff):
    sent = {"id": agent_id, "name": "Porter", "owner_id": "", "provider": "demo", "model_name": "echo"}
    answer = staff.post(reverse("agents:create"), sent)
    assert answer.status_code == 422
    return text(answer)


def duplicate_on_the_page(agent_id, caller, staff):
    agent = AgentFactory(id="porter")
    sent = {"id": agent_id, "name": "Copy", "owner_id": ""}
    return text(staff.post(reverse("versions:duplicate", args=[agent.pk, 1]), sent))


def create_in_the_admin(agent_id, caller, staff):
    return text(
        staff.post(reverse("admin:agents_app_agent_add"), {"id": agent_id, **admin_form(AgentFactory.build())})
    )


def duplicate_in_the_admin(agent_id, caller, staff):
    agent = AgentFactory(id="porter")
    sent = {"id": agent_id, "name": "Copy", "owner_id": ""}
    return text(staff.post(reverse("admin:agents_app_agent_duplicate", args=[agent.pk]), sent))


def import_a_record(agent_id, caller, staff):
    record = {"id": agent_id, "agent": {"id": agent_id, **BODY}}
    outcome = import_record(Record(agent_id, record), UserFactory(is_superuser=True), {})
    assert outcome.action == "refuse"
    return str(outcome)


def import_as_a_dry_run(agent_id, caller, staff):
    record = {"id": agent_id, "agent": {"id": agent_id, **BODY}}
    outcome = import_record(Record(agent_id, record), UserFactory(is_superuser=True), {"dryRun": True})
    assert outcome.action == "refuse"
    return str(outcome)


def save_by_code(agent_id, caller, staff):
    with pytest.raises(ValidationError) as refused:
        Agent(id=agent_id, **BODY).save()
    return str(refused.value)


def create_by_code(agent_id, caller, staff):
    with pytest.raises(ValidationError) as refused:
        Agent.objects.create(id=agent_id, **BODY)
    return str(refused.value)


def restore_under_another_id(agent_id, caller, staff):
    AgentFactory(id="porter")
    caller.delete(agent_path("porter"))
    (entry,) = caller.get("/api/stored/deleted-agents").body["deletedAgents"]
    answer = caller.post(f"/api/stored/deleted-agents/{entry['id']}/restore", {"id": agent_id})
    assert answer.status_code == 400
    return answer.body["issues"][0]["message"]


DOORS = [
    create_over_the_api,
    duplicate_over_the_api,
    create_on_the_page,
    duplicate_on_the_page,
    create_in_the_admin,
    duplicate_in_the_admin,
    import_a_record,
    import_as_a_dry_run,
    save_by_code,
    create_by_code,
    restore_under_another_id,
]


@pytest.mark.parametrize("agent_id", REASONS, ids=["mixed", "decomposed"])
@pytest.mark.parametrize("create", DOORS)
def test_an_id_that_looks_like_another_one_is_refused(create, agent_id, caller, staff):
    message = create(agent_id, caller, staff)

    assert REASONS[agent_id] in message.replace('\\"', '"').replace("\\'", "'")
    assert not Agent.objects.filter(pk=agent_id).exists()


# --- Agents that have such an ID


def test_an_existing_agent_stays_editable(old_agent, caller, staff):
    address = agent_path(quote(MIXED)).replace("%25", "%")

    assert caller.patch(address, {"name": "First"}).status_code == 200
    page = staff.post(reverse("agents:edit", args=[MIXED]), editor_form(old_agent, name="Second", publish="yes"))
    assert page.status_code == 302
    old_agent.refresh_from_db()
    change = reverse("admin:agents_app_agent_change", args=[MIXED])
    assert staff.post(change, admin_form(old_agent, name="Third")).status_code == 302
    agent = Agent.objects.get(pk=MIXED)
    agent.instructions = "By code."
    agent.save()
    live = {**agent.active_version.snapshot, "name": "Fourth"}
    outcome = import_record(Record(MIXED, {"id": MIXED, "agent": live}), UserFactory(is_superuser=True), {})

    assert outcome.action == "update"
    assert Agent.objects.get(pk=MIXED).name == "Fourth"


def test_an_existing_agent_can_be_a_sub_agent(old_agent, caller):
    assert caller.create("parent", agents=[MIXED]).body["warnings"] == []


def test_an_existing_agent_comes_back_from_the_trash(old_agent, caller):
    caller.delete(agent_path(MIXED))
    (entry,) = caller.get("/api/stored/deleted-agents").body["deletedAgents"]

    assert caller.post(f"/api/stored/deleted-agents/{entry['id']}/restore", {"id": MIXED}).status_code == 201


def test_the_duplicate_of_an_existing_agent_has_a_clear_id(old_agent):
    client = browser(member(Role.PUBLISHER))

    answer = client.post(reverse("agents:selected"), {"act": "duplicate", "agent": [MIXED]})

    assert [result.sentence for result in answer.context["results"]] == ["Duplicated as agent-copy."]
    dialog = client.get(reverse("versions:duplicate", args=[MIXED, 1])).content.decode()
    assert 'value="agent-copy"' in dialog
