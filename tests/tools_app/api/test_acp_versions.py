"""Versions of ACP agents in the API: reading one, and restoring it."""

import pytest

from tests.api_client import Caller
from tests.factories import UserFactory, api_key
from tools_app.models import AcpAgent

pytestmark = pytest.mark.django_db

AGENTS = "/api/stored/acp-agents"
AGENT = f"{AGENTS}/coder"
BODY = {"id": "coder", "title": "Coder", "commandKey": "coder", "env": {"API_KEY": "hush-hush"}}


@pytest.fixture(autouse=True)
def commands(settings):
    settings.ACP_COMMANDS = {
        name: {"argv": ["/usr/bin/true"], "env": ["API_KEY"], "sandbox": "none"} for name in ("coder", "writer")
    }


@pytest.fixture
def superuser():
    return Caller(api_key(UserFactory(is_superuser=True)))


def test_an_earlier_version_is_restored_as_a_new_one(superuser):
    superuser.post(AGENTS, BODY)
    superuser.patch(AGENT, {"title": "Writer", "permissions": "reject", "enabled": False})

    restored = superuser.post(f"{AGENT}/versions/1/restore", {}, Idempotency_Key="k")
    repeated = superuser.post(f"{AGENT}/versions/1/restore", {}, Idempotency_Key="k")

    fields = ("title", "permissions", "enabled", "env", "versionNumber")
    assert restored.status_code == 200
    assert [restored.body[name] for name in fields] == ["Coder", "ask", True, {"API_KEY": "••••"}, 3]
    assert (repeated.body, repeated.headers["Idempotent-Replayed"]) == (restored.body, "true")
    versions = superuser.get(f"{AGENT}/versions").body["versions"]
    assert [(version["versionNumber"], version["source"]) for version in versions] == [
        (3, "restore"),
        (2, "api"),
        (1, "api"),
    ]
    assert superuser.get(f"{AGENT}/versions/3").body["snapshot"] == versions[2]["snapshot"]


def test_another_command_does_not_get_the_stored_environment(superuser):
    superuser.post(AGENTS, BODY)
    superuser.patch(AGENT, {"commandKey": "writer", "env": {"API_KEY": "of the writer"}})

    restored = superuser.post(f"{AGENT}/versions/1/restore", {})

    assert (restored.body["commandKey"], restored.body["env"]) == ("coder", {})
    assert AcpAgent.objects.get().environment == {}


def test_a_version_that_is_not_valid_any_more_is_refused(superuser, settings):
    superuser.post(AGENTS, BODY)
    superuser.patch(AGENT, {"commandKey": "writer", "env": None})
    del settings.ACP_COMMANDS["coder"]

    refused = superuser.post(f"{AGENT}/versions/1/restore", {})

    assert (refused.status_code, refused.body["code"]) == (422, "not_restorable")
    assert AcpAgent.objects.get().command_key == "writer"
    for number in ("3", "x", "99999999999999999999", "-1"):
        assert superuser.get(f"{AGENT}/versions/{number}").status_code == 404
        assert superuser.post(f"{AGENT}/versions/{number}/restore", {}).status_code == 404


def test_a_restore_with_a_stale_etag_is_refused(superuser):
    stale = superuser.post(AGENTS, BODY).headers["ETag"]
    superuser.patch(AGENT, {"title": "Writer"})

    refused = superuser.post(f"{AGENT}/versions/1/restore", {}, If_Match=stale)

    assert (refused.status_code, refused.body["code"]) == (412, "precondition_failed")
    assert AcpAgent.objects.get().title == "Writer"


def test_a_restore_is_not_repeated_to_who_is_no_superuser_any_more():
    user = UserFactory(is_superuser=True)
    caller = Caller(api_key(user))
    caller.post(AGENTS, BODY)
    caller.post(f"{AGENT}/versions/1/restore", {}, Idempotency_Key="k")
    user.is_superuser = False
    user.save()

    assert caller.post(f"{AGENT}/versions/1/restore", {}, Idempotency_Key="k").status_code == 404
