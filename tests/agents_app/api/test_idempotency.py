"""POST requests with an `Idempotency-Key`."""

from datetime import timedelta
from functools import partial

import pytest
from django.db.models.signals import pre_save
from django.utils import timezone

from access_app.models import Membership
from agents_app.models import Agent, IdempotencyRecord
from agents_app.tasks import expired_idempotency_records
from tests.api_client import AGENTS, MODEL, Caller, agent_path
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory, api_key, member

BODY = {"id": "concierge", "name": "Concierge", "instructions": "", "model": MODEL}
VERSIONS = agent_path("concierge", "versions")


def test_a_repeated_request_gets_the_first_response_and_has_no_effect(api):
    first = api.post(AGENTS, BODY, Idempotency_Key="k1")
    api.patch(agent_path(), {"name": "Later"})

    again = api.post(AGENTS, BODY, Idempotency_Key="k1")

    assert (again.status_code, again.body) == (first.status_code, first.body) == (201, first.body)
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert api.get(agent_path()).body["name"] == "Later"


def test_a_repeated_snapshot_creates_one_version(api):
    api.create()

    made = [api.post(VERSIONS, {"name": "Spring"}, Idempotency_Key="k").body["id"] for _ in range(3)]

    assert len(set(made)) == 1
    assert api.get(VERSIONS).body["total"] == 2


def test_the_key_with_another_body_or_path_is_refused(api):
    api.post(AGENTS, BODY, Idempotency_Key="k")

    for path, body in ((AGENTS, {**BODY, "name": "Other"}), (VERSIONS, BODY)):
        answer = api.post(path, body, Idempotency_Key="k")

        assert (answer.status_code, answer.body["code"]) == (422, "key_reused")


def test_two_callers_may_use_the_same_key(api, editor):
    api.post(AGENTS, BODY, Idempotency_Key="k")

    assert editor.post(AGENTS, {**BODY, "id": "other"}, Idempotency_Key="k").body["id"] == "other"


def test_a_failed_request_may_be_repeated(api):
    assert api.post(AGENTS, {**BODY, "name": ""}, Idempotency_Key="k").status_code == 400
    assert api.post(VERSIONS, {}, Idempotency_Key="k").status_code == 404

    assert api.post(AGENTS, BODY, Idempotency_Key="k").status_code == 201


def test_permissions_are_checked_before_a_response_is_repeated():
    user = member("editor")
    caller = Caller(api_key(user))
    caller.post(AGENTS, BODY, Idempotency_Key="a")
    caller.post(VERSIONS, {}, Idempotency_Key="b")

    Membership.objects.update(role="viewer")
    assert [
        caller.post(path, body, Idempotency_Key=key).status_code
        for path, body, key in ((AGENTS, BODY, "a"), (VERSIONS, {}, "b"))
    ] == [403, 403]

    Membership.objects.all().update(owner_id="bar")
    AgentFactory(owner_id="bar")
    assert caller.post(VERSIONS, {}, Idempotency_Key="b").status_code == 404


@pytest.fixture
def saved_models():
    """Record the model of each saved row."""
    saved = []

    def note(sender, **kwargs):
        saved.append(sender)

    pre_save.connect(note)
    yield saved
    pre_save.disconnect(note)


def test_a_repeat_does_not_run_the_request_again(api, saved_models):
    api.create()
    requests = [
        (AGENTS, {**BODY, "id": "porter"}),
        (VERSIONS, {"name": "Spring"}),
        (agent_path("concierge", "duplicate"), {"id": "copy"}),
        (agent_path("concierge", "discard-draft"), {}),
        (f"{VERSIONS}/{Agent.objects.get().active_version_id}/restore", {}),
        (f"{VERSIONS}/{Agent.objects.get().active_version_id}/activate", {}),
        (agent_path("concierge", "activations/undo"), {}),
        ("/api/stored/agent-export", {}),
    ]
    first = [api.post(path, body, Idempotency_Key=f"{n}") for n, (path, body) in enumerate(requests)]
    assert [answer.status_code for answer in first] == [201, 201, 201, 200, 200, 200, 200, 202]
    saved_models.clear()

    again = [api.post(path, body, Idempotency_Key=f"{n}") for n, (path, body) in enumerate(requests)]

    assert saved_models == []
    assert [(answer.status_code, answer.body) for answer in again] == [(one.status_code, one.body) for one in first]


def test_the_role_that_a_request_needed_is_stored(api):
    api.create()
    version = f"{VERSIONS}/{Agent.objects.get().active_version_id}"
    for path, body in (
        (VERSIONS, {}),
        (f"{version}/restore", {}),
        (f"{version}/restore", {"autoPublish": False}),
        ("/api/stored/agent-export", {}),
    ):
        api.post(path, body, Idempotency_Key=f"{path} {body}"[-200:].replace("'", ""))

    stored = IdempotencyRecord.objects.order_by("pk").values_list("role", "owner_id")
    assert [*stored] == [("editor", ""), ("publisher", ""), ("editor", ""), ("", "")]


def test_a_repeat_needs_the_role_for_the_owner_of_the_first_request():
    user = member("publisher", "kitchen")
    Membership.objects.create(user=user, owner_id="bar", role="publisher")
    caller = Caller(api_key(user))
    body = {**BODY, "ownerId": "kitchen"}
    assert [caller.post(AGENTS, body, Idempotency_Key="k").status_code for _ in range(2)] == [201, 201]

    Membership.objects.filter(owner_id="kitchen").update(role="viewer")

    assert caller.post(AGENTS, body, Idempotency_Key="k").status_code == 403


def test_a_repeat_for_an_agent_that_was_deleted_is_not_found(api):
    api.create()
    api.post(VERSIONS, {}, Idempotency_Key="k")
    api.delete(agent_path())

    assert api.post(VERSIONS, {}, Idempotency_Key="k").status_code == 404


def test_an_answer_without_a_stored_role_is_not_repeated(api):
    """Refuse a response stored by an older release, which recorded no role."""
    api.post(AGENTS, BODY, Idempotency_Key="k")
    IdempotencyRecord.objects.update(role=None)

    answer = api.post(AGENTS, BODY, Idempotency_Key="k")

    assert (answer.status_code, answer.body["code"]) == (409, "not_repeatable")
    assert Agent.objects.get().versions.count() == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_long_or_unprintable_key_is_refused(api, key):
    assert api.post(AGENTS, BODY, Idempotency_Key=key).status_code == 400
    assert not Agent.objects.exists()


def test_a_key_expires_after_a_day_and_its_response_is_deleted(api):
    api.post(AGENTS, BODY, Idempotency_Key="k")
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert expired_idempotency_records().count() == 1

    assert api.post(AGENTS, {**BODY, "id": "new"}, Idempotency_Key="k").status_code == 201


def test_a_response_is_stored_for_the_configured_days(api, settings):
    settings.IDEMPOTENCY_DAYS = 3
    api.post(AGENTS, BODY, Idempotency_Key="k")
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(days=2))

    again = api.post(AGENTS, BODY, Idempotency_Key="k")

    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert expired_idempotency_records().count() == 0


@pytest.mark.django_db(transaction=True)
def test_concurrent_repeats_create_one_version():
    key = api_key(member("publisher"))
    Caller(key).create()

    answers = run_concurrently(
        [partial(Caller(key).post, VERSIONS, {"name": "x"}, Idempotency_Key="k") for _ in range(6)]
    )

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.body["id"] for answer in answers}) == 1
    assert Agent.objects.get().versions.count() == 2
