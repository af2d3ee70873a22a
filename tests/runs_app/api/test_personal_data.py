"""Export and deletion of all data of a resource by the API."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs_app.runner import run_claimed
from memory_app.models import Resource, Thread
from memory_app.realms import resource_digest, user_realm
from memory_app.working import values
from runs_app import tasks  # noqa: F401  registers the handlers
from runs_app.models import PendingCall
from runs_app.privacy.jobs import start_resource_export
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import PendingCallFactory, RunFactory

pytestmark = pytest.mark.django_db

PATH = "/api/memory/resources/alice"


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def thread(editor):
    thread = add_thread(editor, texts=[("user", "turquoise")])
    values.replace_text(thread.resource, "# Ann", values.Origin())
    return thread


def test_an_export_has_a_file_with_all_data(editor, thread):
    caller = Caller(api_key(editor))

    started = caller.post(f"{PATH}/export")
    run_claimed(started.body["id"])

    answer = caller.client.get(f"/api/jobs/{started.body['id']}/file")
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    assert started.status_code == 202
    assert [line["type"] for line in lines] == ["resource", "workingRevision", "thread", "message"]
    assert (lines[1]["value"], lines[3]["text"]) == ("# Ann", "turquoise")


def test_the_number_of_queries_of_an_export_does_not_grow_with_its_lines(editor):
    def count_queries(key, messages):
        thread = add_thread(editor, f"t-{key}", key, [("user", "turquoise")] * messages)
        job = start_resource_export(editor, thread.realm, key)
        with CaptureQueriesContext(connection) as queries:
            assert run_claimed(str(job.pk)).result["records"] == messages + 2
        return len(queries)

    assert count_queries("bob", 1) == count_queries("carol", 30)


def test_forgetting_leaves_nothing(editor, thread):
    started = Caller(api_key(editor)).post(f"{PATH}/forget")
    run_claimed(started.body["id"])

    assert started.status_code == 202
    assert not Thread.objects.exists()
    assert not Resource.objects.exists()


def test_approvals_are_exported_and_deleted_although_nothing_else_is_left_of_a_resource(editor):
    digest = resource_digest(f"u{editor.pk}", "alice")
    call = PendingCallFactory(run=RunFactory(), resource_digest=digest)
    caller = Caller(api_key(editor))

    results = [run_claimed(caller.post(f"{PATH}/{action}").body["id"]).result for action in ("export", "forget")]

    assert (results[0]["records"], results[1]["approvals"]) == (1, 1)
    assert not PendingCall.objects.filter(pk=call.pk).exists()


@pytest.mark.parametrize("action", ["export", "forget"])
def test_only_the_realm_reaches_a_resource(editor, thread, action):
    stranger = Caller(api_key(member("manager")))
    bound = Caller(api_key(editor, resource="alice"))
    reader = Caller(api_key(editor, "viewer"))

    assert stranger.post(f"{PATH}/{action}").status_code == 404
    assert (bound.post(f"{PATH}/{action}").status_code, reader.post(f"{PATH}/{action}").status_code) == (403, 403)
    assert Caller(api_key(editor)).post(f"/api/memory/resources/bob/{action}").status_code == 404


@pytest.mark.parametrize("is_member", [True, False])
def test_an_export_has_only_questions_and_answers_of_a_team_that_the_user_left(is_member):
    user = member("editor", "support")
    run = RunFactory(agent=AgentFactory(owner_id="support"), requested_by=user, prompt="Hello")
    run.input |= {"requestContext": {"tier": "gold"}, "options": {"maxSteps": 2}}
    run.save()
    RunFactory(agent=run.agent, requested_by=user, parent=run, root_id=run.pk, output="inner")
    PendingCallFactory(run=run, requested_by=user)
    job = start_resource_export(user, user_realm(user.pk), user_realm(user.pk))
    if not is_member:
        user.memberships.all().delete()

    run_claimed(str(job.pk))

    answer = Caller(api_key(user)).client.get(f"/api/jobs/{job.pk}/file")
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    types = ["run", *["run"] * is_member, *["runEvent"] * 4 * is_member, *["approval"] * is_member]
    assert [line["type"] for line in lines] == types
    if is_member:
        sent = lines[0]["input"]
        values = sent["messages"], sent["options"], sent["requestContext"]
    else:
        values = lines[0]["messages"], lines[0]["options"], lines[0]["request_context"]
    assert (values[0][0]["content"][0]["text"], lines[0]["output"]) == ("Hello", "Good day.")
    assert values[1:] == ({"maxSteps": 2}, {"tier": "gold"})
    assert ("input" in lines[0], "warnings" in lines[0]) == (is_member, is_member)
