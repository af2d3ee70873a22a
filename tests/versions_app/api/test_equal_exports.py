"""An export that equals an earlier one of the same user is answered with that one."""

import pytest
from django.contrib.auth.models import User

from jobs_app.models import Job, JobFile
from tests.agent_exchange import EXPORT, export, run_job
from tests.api_client import Caller, agent_path
from tests.concurrently import run_concurrently
from tests.factories import MembershipFactory, api_key, member
from versions_app.exchange.export_job import start_agent_export


def test_an_export_is_answered_with_the_last_one_if_nothing_changed(api):
    api.create("a")
    job = export(api)[1]

    again = api.post(EXPORT)

    assert (again.status_code, again.body) == (200, job)
    assert Job.objects.count() == JobFile.objects.count() == 1


@pytest.mark.parametrize("change", ["edit", "draft", "publish", "create", "delete", "archive", "owner"])
def test_an_export_after_a_change_is_a_new_one(api, change):
    api.create("a")
    api.create("b")
    api.patch(agent_path("b"), {"name": "Draft", "autoPublish": False})
    before, job = export(api)
    changes = {
        "edit": lambda: api.patch(agent_path("a"), {"name": "Other"}),
        "draft": lambda: api.patch(agent_path("a"), {"name": "Other", "autoPublish": False}),
        "publish": lambda: api.post(agent_path("b", "versions", head_of(api, "b"), "activate")),
        "create": lambda: api.create("c"),
        "delete": lambda: api.delete(agent_path("a")),
        "archive": lambda: api.post(agent_path("a", "archive")),
        "owner": lambda: move_to_team(api, "a"),
    }

    answer = changes[change]()
    again = api.post(EXPORT)

    assert answer is None or answer.status_code in (200, 201), answer.body
    assert (again.status_code, again.body["state"]) == (202, "queued")
    run_job(api, again)
    assert again.body["id"] != job["id"]
    assert export(api)[0] != before


def head_of(api, agent_id):
    return api.get(f"{agent_path(agent_id)}?status=draft").body["resolvedVersionId"]


def move_to_team(api, agent_id):
    """Let the user publish for a team and move the agent there."""
    MembershipFactory(user=User.objects.get(username="penny"), owner_id="news", role="publisher")
    return api.patch(agent_path(agent_id), {"ownerId": "news"})


def test_a_waiting_export_is_not_started_twice(api):
    first, again = api.post(EXPORT), api.post(EXPORT)

    assert (again.status_code, again.body["id"]) == (202, first.body["id"])
    assert Job.objects.count() == 1


def test_an_export_of_other_agents_is_a_new_one(api):
    for agent_id in "ab":
        api.create(agent_id)
    user = User.objects.get(username="penny")
    all_agents = export(api)[1]

    some, same, other = (start_agent_export(user, chosen) for chosen in (["a"], ["a", "a"], ["b"]))

    assert len({str(some.pk), str(other.pk), all_agents["id"]}) == 3
    assert same == some
    assert str(start_agent_export(user, ["b", "a"]).pk) == all_agents["id"]


def test_another_user_gets_an_own_export(api, viewer):
    api.create("a")
    job = export(api)[1]

    assert export(viewer)[1]["id"] != job["id"]


def test_an_export_whose_file_was_deleted_is_done_again(api):
    api.create("a")
    content, job = export(api)
    api.delete(f"/api/jobs/{job['id']}")

    again = export(api)

    assert (again[0], again[1]["id"] != job["id"]) == (content, True)


@pytest.mark.django_db(transaction=True)
def test_concurrent_equal_exports_are_one_job():
    key = api_key(member("viewer"))

    answers = run_concurrently([lambda: Caller(key).post(EXPORT)] * 8)

    assert len({answer.body["id"] for answer in answers}) == Job.objects.count() == 1
