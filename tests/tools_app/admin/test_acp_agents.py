"""ACP agents in Django admin: add, environment, limits, switch off, and who may."""

import re
from uuid import uuid4

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, UserFactory, member
from tools_app.acp import cached_agents
from tools_app.acp.workspaces.folders import workspace_folder
from tools_app.admin.acp_agents import WORKSPACE_FILES_STAY
from tools_app.models import AcpAgent, AcpWorkspace

pytestmark = pytest.mark.django_db

ADD = reverse("admin:tools_app_acpagent_add")
LISTS = [reverse(f"admin:tools_app_{name}_changelist") for name in ("acpagent", "acpworkspace", "acppermission")]
FIELDS = {
    "key": "coder",
    "title": "Coder",
    "command_key": "coder",
    "environment": "API_KEY=hush-hush",
    "persists_session": "on",
    "permissions": "ask",
    "memory_mb": "512",
    "processes": "8",
    "cpu_seconds": "60",
    "prompt_seconds": "30",
    "is_enabled": "on",
}


@pytest.fixture(autouse=True)
def commands(settings):
    settings.ACP_COMMANDS = {"coder": {"argv": ["/usr/bin/true"], "env": ["API_KEY"], "sandbox": "none"}}


@pytest.fixture
def superuser(client):
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    return client


def errors(answer):
    return {name: list(messages) for name, messages in answer.context["adminform"].form.errors.items()}


def test_an_agent_is_added_with_an_environment_that_no_page_shows(superuser):
    superuser.post(ADD, FIELDS)

    row = AcpAgent.objects.get()
    change = reverse("admin:tools_app_acpagent_change", args=[row.pk])
    text = superuser.get(change).content.decode()
    superuser.post(change, FIELDS | {"environment": "", "title": "Writer"})
    row.refresh_from_db()
    assert (row.title, row.environment, row.versions.count()) == ("Writer", {"API_KEY": "hush-hush"}, 2)
    assert (row.all_limits.memory_mb, row.all_limits.prompt_seconds) == (512, 30)
    assert "API_KEY" in text
    assert "hush-hush" not in text


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"command_key": "sh"}, "command_key"),
        ({"environment": "PATH=/tmp"}, "environment"),
        ({"environment": "no sign"}, "environment"),
        ({"environment": "API_KEY=a\nAPI_KEY=b"}, "environment"),
        ({"memory_mb": "1"}, "memory_mb"),
        ({"memory_mb": ""}, "memory_mb"),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_stored(superuser, fields, field):
    assert field in errors(superuser.post(ADD, FIELDS | fields))
    assert not AcpAgent.objects.exists()


def test_a_command_in_the_form_is_422(superuser):
    refused = superuser.post(ADD, FIELDS | {"command": "sh"})

    assert (refused.status_code, [*errors(refused)]) == (422, ["__all__"])
    assert not AcpAgent.objects.exists()


def test_an_agent_is_switched_off_and_on(superuser):
    superuser.post(ADD, FIELDS)
    row = AcpAgent.objects.get()
    switch = reverse("admin:tools_app_acpagent_switch", args=[row.pk])

    states = []
    for is_disabled in (False, True):
        assert (">Disabled<" in superuser.get(LISTS[0]).content.decode()) == is_disabled
        enabled = button_value(superuser.get(reverse("admin:tools_app_acpagent_change", args=[row.pk])))
        for _ in range(2):  # by somebody else too, whose page is not up to date
            superuser.post(switch, {"enabled": enabled})
            row.refresh_from_db()
            states.append(row.is_enabled)

    assert states == [False, False, True, True]


def button_value(page):
    """Return the state that the button of a page sends."""
    return re.search(r'name="enabled" value="(\w+)"', page.text)[1]


@pytest.mark.parametrize("by", ["button", "action"])
def test_switching_keeps_what_others_store_meanwhile(superuser, monkeypatch, by):
    superuser.post(ADD, FIELDS)
    row = AcpAgent.objects.get()
    AcpAgent.objects.update(is_enabled=False)

    def change_meanwhile(row, environment):
        AcpAgent.objects.filter(pk=row.pk).update(title="Renamed meanwhile")
        return ""

    monkeypatch.setattr(cached_agents, "acp_unavailable_reason", change_meanwhile)
    if by == "button":
        superuser.post(reverse("admin:tools_app_acpagent_switch", args=[row.pk]), {"enabled": "yes"})
    else:
        superuser.post(LISTS[0], {"action": "enable", ACTION_CHECKBOX_NAME: [row.pk]})

    row.refresh_from_db()
    assert (row.is_enabled, row.title) == (True, "Renamed meanwhile")


def workspace_address(name):
    return reverse(f"admin:tools_app_acpworkspace_{name}", args=[AcpWorkspace.objects.get().pk])


@pytest.mark.parametrize("url", [ADD, *LISTS])
def test_only_superusers_see_the_pages(client, superuser, url):
    allowed = superuser.get(url).status_code
    user = member(Role.MANAGER, "support")
    user.is_staff = True
    user.save()
    client.force_login(user)

    assert allowed == 200 or "acppermission" in url
    assert client.get(url).status_code in (403, 404)


def test_a_workspace_belongs_to_a_team_of_a_list(superuser):
    member(Role.EDITOR, "support")

    form = superuser.get(reverse("admin:tools_app_acpworkspace_add")).context["adminform"].form

    assert [*form.fields["owner_id"].widget.choices] == [("", "Shared"), ("support", "support")]


def test_shared_gets_a_workspace_once(superuser, settings, tmp_path):
    settings.WORKSPACES_DIR = tmp_path
    add = reverse("admin:tools_app_acpworkspace_add")

    answers = [superuser.post(add, {"owner_id": "", "name": "site"}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [302, 200]
    assert "with this Team and Name already exists" in answers[1].text
    assert workspace_folder("", None, uuid4(), "site").name == "named-site"
    listed, page = (superuser.get(address).text for address in (LISTS[1], workspace_address("change")))
    assert "Shared" in listed
    assert "Shared: site" in page


def test_a_workspace_keeps_its_team_and_name_as_its_folder_does(superuser):
    AcpWorkspace.objects.create(owner_id="support", name="site")

    page = superuser.get(workspace_address("change"))
    refused = superuser.post(workspace_address("change"), {"owner_id": "legal", "name": "other"})

    assert (page.status_code, refused.status_code) == (200, 403)
    assert 'name="_save"' not in page.text


@pytest.mark.parametrize("is_selected", [False, True])
def test_the_question_about_a_workspace_says_who_loses_it(superuser, is_selected):
    row = AcpWorkspace.objects.create(owner_id="support", name="site")
    AcpAgent.objects.create(key="coder", title="Coder", command_key="coder", workspace="site")
    AcpAgent.objects.create(key="other", title="Neighbour", command_key="coder")

    selected = {"action": "delete_selected", ACTION_CHECKBOX_NAME: [row.pk]}
    page = superuser.post(LISTS[1], selected) if is_selected else superuser.get(workspace_address("delete"))

    assert "ACP agents that work in it will refuse the tasks of its team: Coder." in page.text
    assert WORKSPACE_FILES_STAY in page.text


@pytest.mark.parametrize("name", ["change", "delete"])
def test_the_pages_of_an_acp_agent_name_the_agents_that_use_it(superuser, name):
    superuser.post(ADD, FIELDS)
    AgentFactory(id="one", name="Tool user", tools=["acp-coder"])
    AgentFactory(id="two", name="Sub-agent user", agents=["acp-coder"])
    AgentFactory(id="three", name="Neighbour", tools=["acp-coder-2"])

    text = superuser.get(reverse(f"admin:tools_app_acpagent_{name}", args=[AcpAgent.objects.get().pk])).text

    assert "Tool user" in text
    assert "Sub-agent user" in text
    assert "Neighbour" not in text


def test_the_button_of_a_deletion_repeats_what_is_deleted(superuser):
    superuser.post(ADD, FIELDS)

    text = superuser.get(reverse("admin:tools_app_acpagent_delete", args=[AcpAgent.objects.get().pk])).text

    assert 'value="Delete ACP agent"' in text


def test_several_acp_agents_are_not_deleted_without_their_users(superuser):
    superuser.post(ADD, FIELDS)

    assert "delete_selected" not in superuser.get(LISTS[0]).text


def restore(superuser, row, version):
    path = reverse("admin:tools_app_acpagent_restore", args=[row.pk])
    return superuser.post(path, {"version": version}, follow=True).content.decode()


def test_an_earlier_version_is_restored_by_a_button(superuser):
    superuser.post(ADD, FIELDS)
    row = AcpAgent.objects.get()
    change = reverse("admin:tools_app_acpagent_change", args=[row.pk])
    superuser.post(change, FIELDS | {"environment": "", "title": "Writer", "memory_mb": "1024"})

    text = superuser.get(change).content.decode()
    assert "Restore version 1" in text
    assert "Restore version 2" not in text
    assert "name, limits" in text
    assert "Version 9 of ACP agent coder not found" in restore(superuser, row, "9")
    assert "Version 3 has the restored configuration." in restore(superuser, row, "1")
    row.refresh_from_db()
    assert (row.title, row.all_limits.memory_mb, row.environment) == ("Coder", 512, {"API_KEY": "hush-hush"})
    assert [version.source for version in row.versions.all()] == ["restore", "admin", "admin"]
    assert superuser.get(reverse("admin:tools_app_acpagent_restore", args=[row.pk])).status_code == 405


def test_a_restored_version_with_another_command_deletes_the_environment(superuser, settings):
    settings.ACP_COMMANDS = settings.ACP_COMMANDS | {"other": {"argv": ["/usr/bin/true"], "sandbox": "none"}}
    superuser.post(ADD, FIELDS | {"command_key": "other", "environment": ""})
    row = AcpAgent.objects.get()
    superuser.post(reverse("admin:tools_app_acpagent_change", args=[row.pk]), FIELDS)

    text = restore(superuser, row, "1")

    row.refresh_from_db()
    assert (row.command_key, row.environment) == ("other", {})
    assert "The command changed, so the stored environment was deleted: API_KEY. Enter it again." in text
    settings.ACP_COMMANDS = {"other": settings.ACP_COMMANDS["other"]}
    assert "This version cannot be restored" in restore(superuser, row, "2")


def test_only_superusers_restore_versions(client):
    row = AcpAgent.objects.create(key="coder", title="Coder", command_key="coder")
    client.force_login(member(Role.MANAGER, "support", is_staff=True))

    answer = client.post(reverse("admin:tools_app_acpagent_restore", args=[row.pk]), {"version": "1"})

    assert answer.status_code == 404


def test_a_missing_command_is_one_error(superuser):
    form = superuser.post(ADD, {**FIELDS, "command_key": "", "environment": ""}).context["adminform"].form

    assert form.errors == {"command_key": ["This is required."]}
