"""The steps of durable runs."""

import pytest

from runs_app.models import RunStep
from tests.api_client import Caller
from tests.factories import api_key, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


@pytest.fixture
def run(user):
    run = RunFactory(requested_by=user)
    RunStep.objects.create(run=run, key="0/m/1", kind="model", state="done", result={"text": "Hi"}, attempts=2)
    RunStep.objects.create(run=run, key="0/t/c1", kind="tool", state="started")
    return run


def test_steps_are_listed_in_order_with_their_results(editor, run):
    body = editor.get(f"/api/runs/{run.pk}/steps").body

    first, second = body["steps"]
    assert first == {
        "key": "0/m/1",
        "kind": "model",
        "state": "done",
        "attempts": 2,
        "startedAt": first["startedAt"],
        "finishedAt": None,
        "result": {"text": "Hi"},
    }
    assert [second[name] for name in ("key", "kind", "state", "attempts", "result")] == [
        "0/t/c1",
        "tool",
        "started",
        1,
        None,
    ]
    assert [body[name] for name in ("total", "page", "perPage", "hasMore")] == [2, 0, 100, False]


def test_steps_have_pages(editor, run):
    body = editor.get(f"/api/runs/{run.pk}/steps?page=1&perPage=1").body

    assert ([step["key"] for step in body["steps"]], body["total"]) == (["0/t/c1"], 2)


def test_only_readers_of_the_run_see_its_steps(editor, run, user):
    path = f"/api/runs/{run.pk}/steps"

    assert Caller(api_key(member("editor"))).get(path).status_code == 404
    assert Caller(api_key(member("manager", "elsewhere"))).get(path).status_code == 404
    assert Caller(api_key(member("publisher"))).get(path).body["total"] == 2
    assert Caller(api_key(user, "viewer")).get(path).body["total"] == 2
    user.memberships.all().delete()
    assert editor.get(path).body["steps"] == []


def test_steps_take_a_fixed_number_of_queries(editor, run, django_assert_num_queries):
    editor.get("/api/runs")

    with django_assert_num_queries(4):
        editor.get(f"/api/runs/{run.pk}/steps")
