"""Access to pages of runs."""

import pytest
from django.test import Client
from django.urls import reverse

from access_app.role import Role
from runs_app.models import AgentRun, BackgroundTask, SavedInput
from runs_app.urls import urlpatterns
from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs_app.factories import PendingCallFactory, RunFactory

POST_ONLY = {"stop", "score", "arrange", "run", "save_input", "delete_input", "decide", "cancel_task"}
# They show every user their own rows.
OPEN_TO_ALL = {"list", "approvals", "approval_count", "background_tasks", "notices"}
ALL_ROUTES = [pattern.name for pattern in urlpatterns]


@pytest.fixture
def run_of_other_owner(db):
    """Return a run, a call and a background task of it, and a saved input of another owner."""
    run = RunFactory(agent=AgentFactory(owner_id="newsroom"), open=True)
    call = PendingCallFactory(run=run)
    columns = {"agent_key": run.agent_key, "owner_id": "newsroom", "tool": "research", "call_key": "research"}
    task = BackgroundTask.objects.create(run=run, call_id="c1", timeout_ms=1000, **columns)
    saved_input = SavedInput.objects.create(user=run.requested_by, agent=run.agent, name="Greeting", text="Hello")
    rows = {"run_id": run.pk, "input_id": saved_input.pk, "call_id": call.pk, "task_id": task.pk}
    return {"agent_id": run.agent_key, **rows}


def address(name, known):
    (pattern,) = (pattern for pattern in urlpatterns if pattern.name == name)
    return reverse(f"runs:{name}", kwargs={key: known[key] for key in pattern.pattern.converters})


@pytest.mark.parametrize("name", sorted({*ALL_ROUTES} - OPEN_TO_ALL))
def test_objects_of_other_users_are_not_found(run_of_other_owner, name):
    stranger = browser(member(Role.MANAGER, "elsewhere"))

    answers = [
        stranger.get(address(name, run_of_other_owner)),
        stranger.post(address(name, run_of_other_owner), {"message": "Hello"}),
    ]

    statuses = {answer.status_code for answer in answers}
    assert statuses <= {404, 405}
    assert 404 in statuses
    assert "Concierge" not in "".join(answer.content.decode() for answer in answers)
    assert AgentRun.objects.filter(cancel_requested_at=None).count() == SavedInput.objects.count() == 1


@pytest.mark.parametrize("name", ALL_ROUTES)
def test_an_anonymous_user_is_redirected_to_sign_in(run_of_other_owner, name):
    method = "post" if name in POST_ONLY else "get"

    answer = getattr(Client(), method)(address(name, run_of_other_owner))

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", sorted(POST_ONLY))
def test_get_requests_change_nothing(run_of_other_owner, name):
    assert browser(member(Role.MANAGER, "newsroom")).get(address(name, run_of_other_owner)).status_code == 405


@pytest.mark.parametrize("name", sorted(POST_ONLY))
def test_every_action_needs_a_csrf_token(run_of_other_owner, name):
    client = Client(enforce_csrf_checks=True)
    client.force_login(member(Role.MANAGER, "newsroom"))

    assert client.post(address(name, run_of_other_owner), {"message": "Hello"}).status_code == 403
