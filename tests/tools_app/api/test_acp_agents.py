"""ACP agents in the API: create, change, list, and who may."""

import pytest

from access_app.role import Role
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tools_app.acp.cached_agents import acp_table, get_available_agent
from tools_app.acp.errors import AcpError
from tools_app.models import AcpAgent
from tools_app.programs import sandbox

pytestmark = pytest.mark.django_db

AGENTS = "/api/stored/acp-agents"
AGENT = f"{AGENTS}/coder"
BODY = {"id": "coder", "title": "Coder", "commandKey": "coder"}


@pytest.fixture(autouse=True)
def commands(settings):
    settings.ACP_COMMANDS = {
        "coder": {"argv": ["/usr/bin/true"], "env": ["API_KEY"], "sandbox": "none"},
        "boxed": {"argv": ["/usr/bin/true"]},
    }


@pytest.fixture
def superuser():
    return Caller(api_key(UserFactory(is_superuser=True)))


def test_an_agent_is_created_changed_and_deleted_with_versions(superuser):
    created = superuser.post(AGENTS, {**BODY, "env": {"API_KEY": "hush-hush"}, "limits": {"memoryMb": 512}})
    changed = superuser.patch(AGENT, {"title": "Writer", "permissions": "reject", "persistSession": False})
    superuser.patch(AGENT, {"title": "Writer"})
    versions = superuser.get(f"{AGENT}/versions")

    assert created.status_code == 201
    assert created.body["limits"] == {"memoryMb": 512, "processes": 64, "cpuSeconds": 600, "promptSeconds": 300}
    assert (created.body["env"], created.body["permissions"]) == ({"API_KEY": "••••"}, "ask")
    assert (changed.body["title"], changed.body["permissions"], changed.body["persistSession"]) == (
        "Writer",
        "reject",
        False,
    )
    assert [version["versionNumber"] for version in versions.body["versions"]] == [2, 1]
    assert "hush-hush" not in (created.content + changed.content + versions.content).decode()
    assert AcpAgent.objects.get().environment == {"API_KEY": "hush-hush"}
    assert superuser.get(AGENTS).body["total"] == 1
    AgentFactory(id="one", tools=["acp-coder"])
    message = "ACP agent coder deleted. These agents run without it from now on: 'one'"
    assert superuser.delete(AGENT).body == {"success": True, "message": message}
    assert superuser.get(AGENT).status_code == 404


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"commandKey": "sh"}, "commandKey"),
        ({"env": {"LD_PRELOAD": "/tmp/x.so"}}, "env"),
        ({"limits": {"memoryMb": 1}}, "limits.memoryMb"),
        ({"limits": {"gpus": 1}}, "limits.gpus"),
        ({"permissions": "all"}, "permissions"),
        ({"workspace": "../x"}, "workspace"),
        ({"id": "Coder!"}, "id"),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_stored(superuser, fields, path):
    refused = superuser.post(AGENTS, {**BODY, **fields})

    assert refused.status_code == 400
    assert path in [issue["field"] for issue in refused.body["issues"]]
    assert not AcpAgent.objects.exists()


def test_all_issues_are_reported_at_once(superuser):
    fields = {"permissions": "all", "workspace": "../x", "limits": {"memoryMb": 1}, "env": {"LD_PRELOAD": "x"}}
    paths = ["env", "limits.memoryMb", "permissions", "workspace"]

    new = superuser.post(AGENTS, {**BODY, **fields})
    superuser.post(AGENTS, BODY)
    changed = superuser.patch(AGENT, {**fields, "id": "other"})

    assert sorted(issue["field"] for issue in new.body["issues"]) == paths
    assert sorted(issue["field"] for issue in changed.body["issues"]) == sorted([*paths, "id"])


@pytest.mark.parametrize("name", ["command", "argv", "args"])
def test_a_command_in_a_body_is_refused(superuser, name):
    superuser.post(AGENTS, BODY)

    refused = [superuser.post(AGENTS, {**BODY, "id": "b", name: "sh"}), superuser.patch(AGENT, {name: ["sh"]})]

    assert [(response.status_code, response.body["code"]) for response in refused] == [
        (422, "command_not_allowed")
    ] * 2
    assert AcpAgent.objects.count() == 1


def test_another_command_does_not_get_the_stored_environment(superuser, settings):
    settings.ACP_COMMANDS["boxed"] = {"argv": ["/usr/bin/env"], "env": ["API_KEY"], "sandbox": "none"}
    superuser.post(AGENTS, {**BODY, "env": {"API_KEY": "hush-hush"}})

    refused = superuser.patch(AGENT, {"commandKey": "boxed"})
    given = superuser.patch(AGENT, {"commandKey": "boxed", "env": None})

    assert (refused.status_code, refused.body["issues"][0]["field"]) == (400, "env")
    assert (given.status_code, given.body["env"]) == (200, {})


def test_a_masked_value_keeps_the_stored_one_of_the_same_command(superuser, settings):
    settings.ACP_COMMANDS["boxed"] = {"argv": ["/usr/bin/env"], "env": ["API_KEY"], "sandbox": "none"}
    read = superuser.post(AGENTS, {**BODY, "env": {"API_KEY": "hush-hush"}}).body

    renamed = superuser.patch(AGENT, read | {"title": "Writer"})
    moved = superuser.patch(AGENT, read | {"commandKey": "boxed"})
    new = superuser.post(AGENTS, {**BODY, "id": "other", "env": {"API_KEY": "••••"}})

    assert (renamed.status_code, renamed.body["title"]) == (200, "Writer")
    assert [answer.status_code for answer in (moved, new)] == [400, 400]
    assert moved.body["issues"] == [
        {"field": "env", "message": "The value of API_KEY cannot be used. Enter it again."}
    ]
    assert AcpAgent.objects.get().environment == {"API_KEY": "hush-hush"}


def test_no_agent_is_enabled_without_a_sandbox_unless_the_operator_says_so(superuser, settings, monkeypatch):
    monkeypatch.setattr(sandbox, "is_sandbox_available", lambda: False)

    refused = superuser.post(AGENTS, {**BODY, "commandKey": "boxed"})
    disabled = superuser.post(AGENTS, {**BODY, "commandKey": "boxed", "enabled": False})
    settings.ACP_SANDBOX = "none"
    enabled = superuser.patch(AGENT, {"enabled": True})

    assert refused.status_code == 400
    assert "bubblewrap is not available" in refused.body["issues"][0]["message"]
    assert (disabled.status_code, enabled.status_code) == (201, 200)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", AGENTS),
        ("POST", AGENTS),
        ("GET", AGENT),
        ("PATCH", AGENT),
        ("DELETE", AGENT),
        ("GET", f"{AGENT}/versions"),
        ("GET", f"{AGENT}/versions/1"),
        ("POST", f"{AGENT}/versions/1/restore"),
    ],
)
def test_a_stranger_gets_404_on_every_route(superuser, method, path):
    superuser.post(AGENTS, BODY)
    manager = Caller(api_key(member(Role.MANAGER, "support")))
    weak = Caller(api_key(UserFactory(is_superuser=True), role=Role.EDITOR))

    for caller in (manager, weak):
        response = caller.call(method, path, BODY if method in ("POST", "PATCH") else None)
        assert response.status_code == 404
    assert AcpAgent.objects.get().title == "Coder"


def test_a_change_with_a_stale_etag_is_refused_and_stores_nothing(superuser):
    stale = superuser.post(AGENTS, BODY).headers["ETag"]
    fresh = superuser.patch(AGENT, {"title": "Writer"}, If_Match=stale).headers["ETag"]

    refused = [superuser.patch(AGENT, {"title": "Late"}, If_Match=stale), superuser.delete(AGENT, If_Match=stale)]

    assert [(answer.status_code, answer.body["code"]) for answer in refused] == [(412, "precondition_failed")] * 2
    assert {answer.headers["ETag"] for answer in refused} == {fresh}
    assert AcpAgent.objects.get().title == "Writer"
    assert superuser.get(AGENT, If_None_Match=fresh).status_code == 304
    assert superuser.patch(AGENT, {"title": "Late"}, If_Match=fresh).status_code == 200


def test_a_repeated_request_creates_one_agent(superuser):
    first = superuser.post(AGENTS, BODY, Idempotency_Key="k")
    again = superuser.post(AGENTS, BODY, Idempotency_Key="k")
    other = superuser.post(AGENTS, {**BODY, "title": "Writer"}, Idempotency_Key="k")

    assert (again.status_code, again.body) == (first.status_code, first.body) == (201, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (other.status_code, other.body["code"]) == (422, "key_reused")
    assert AcpAgent.objects.count() == 1


def test_a_response_is_repeated_to_superusers_only():
    user = UserFactory(is_superuser=True)
    caller = Caller(api_key(user))
    caller.post(AGENTS, BODY, Idempotency_Key="k")
    user.is_superuser = False
    user.save()

    assert caller.post(AGENTS, BODY, Idempotency_Key="k").status_code == 404


def test_unknown_names_are_warnings_and_errors_of_a_strict_request(superuser):
    refused = superuser.post(f"{AGENTS}?strict=true", {**BODY, "permisions": "reject"})
    created = superuser.post(AGENTS, {**BODY, "permisions": "reject"})
    again = superuser.patch(AGENT, superuser.get(AGENT).body | {"env": {}})

    assert (refused.status_code, refused.body["issues"][0]["field"]) == (400, "permisions")
    assert "Did you mean permissions?" in created.body["warnings"][0]["message"]
    assert "warnings" not in again.body


def test_stored_limits_that_are_not_valid_disable_one_agent_until_they_are_entered_again(superuser):
    """For example those of another release, which allowed more."""
    for key in ("coder", "writer"):
        superuser.post(AGENTS, {**BODY, "id": key})
    AcpAgent.objects.filter(key="coder").update(limits={"memoryMb": 9})
    acp_table.invalidate()

    assert get_available_agent("writer").limits.memory_mb == 2048
    with pytest.raises(AcpError, match=r"The limits of the ACP agent 'Coder' are not valid\. Enter them again\."):
        get_available_agent("coder")
    assert superuser.get(AGENTS).body["total"] == 2
    assert superuser.get(AGENT).body["limits"] == {"memoryMb": 9}
    assert superuser.patch(AGENT, {"limits": {"memoryMb": 99}}).status_code == 200
    assert get_available_agent("coder").limits.memory_mb == 99
