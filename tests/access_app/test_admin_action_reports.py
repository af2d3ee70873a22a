"""Messages of actions of the admin about selected rows that they leave out."""

import pytest
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME as SELECTED
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages

from access_app.models import Membership
from agents_app.models import Agent
from evals_app.models import Dataset, Experiment
from knowledge_app.models import KnowledgeBase
from runs_app.admin import background_tasks
from runs_app.background import endings
from runs_app.models import BackgroundTask
from tests.factories import AgentFactory, member
from tests.knowledge_app.conftest import make_base
from tests.page_client import browser
from tests.runs_app.factories import RunFactory
from tools_app.admin.mcp_servers import MANAGERS_HINT
from tools_app.models import McpServer
from versions_app.admin.version_actions import PIN_HINT
from versions_app.models import AgentVersion

pytestmark = pytest.mark.django_db

INDEX_HINT = "Only an editor of its team can have a knowledge base indexed again."
ACTIONS = {
    "enable": ("tools_app/mcpserver", f"0 of 1 server enabled. {MANAGERS_HINT}"),
    "disable": ("tools_app/mcpserver", f"0 of 1 server disabled. {MANAGERS_HINT}"),
    "list_tools_of_selected": ("tools_app/mcpserver", f"0 of 1 server queued for the listing. {MANAGERS_HINT}"),
    "index_again": ("knowledge_app/knowledgebase", f"0 of 1 knowledge base queued to be indexed again. {INDEX_HINT}"),
    "pin": ("versions_app/agentversion", f"0 of 1 version pinned. {PIN_HINT}"),
    "unpin": ("versions_app/agentversion", f"0 of 1 version unpinned. {PIN_HINT}"),
}


@pytest.fixture
def viewer():
    user = member("viewer", "support", is_staff=True)
    Membership.objects.create(user=user, owner_id="legal", role="manager")  # actions are offered to managers of a team
    return user


def create_server(owner_id="support"):
    return McpServer.objects.create(key=f"of-{owner_id}", title="Office", owner_id=owner_id, url="https://x.org/mcp")


def run_action(user, model, action, *rows):
    """Run an action, and return its answer with the levels and texts of its messages."""
    answer = browser(user).post(f"/admin/{model}/", {"action": action, SELECTED: [row.pk for row in rows]})
    return answer, [(message.level, str(message)) for message in get_messages(answer.wsgi_request)]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_that_the_role_forbids_is_a_warning_with_the_reason(viewer, action):
    model, text = ACTIONS[action]
    rows = {
        "tools_app/mcpserver": create_server,
        "knowledge_app/knowledgebase": lambda: make_base("handbook", "support"),
        "versions_app/agentversion": lambda: AgentFactory(owner_id="support").active_version,
    }

    assert run_action(viewer, model, action, rows[model]())[1] == [(messages.WARNING, text)]


def test_the_reason_is_for_some_of_the_servers_too(viewer):
    servers = [create_server(), create_server("legal")]

    _, reported = run_action(viewer, "tools_app/mcpserver", "disable", *servers)

    assert reported == [(messages.SUCCESS, f"1 of 2 servers disabled. {MANAGERS_HINT}")]


def test_the_question_about_pins_has_no_versions_that_the_user_may_not_pin(viewer):
    own = AgentFactory(owner_id="legal", name="Lawyer").active_version
    other = AgentFactory(owner_id="support", name="Porter").active_version

    answer, _ = run_action(viewer, "versions_app/agentversion", "pin", own, other)

    page = answer.content.decode()
    assert ("Pin 1 version" in page, "v1 of Lawyer" in page, "v1 of Porter" in page) == (True, True, False)
    assert f"1 of the selected versions stays as it is. {PIN_HINT}" in page


def test_a_cancelled_task_says_that_a_finished_one_stays(admin_user):
    columns = {"run": RunFactory(), "tool": "search", "timeout_ms": 1000}
    tasks = [
        BackgroundTask.objects.create(call_key=status, status=status, **columns) for status in ("pending", "completed")
    ]

    reports = [run_action(admin_user, "runs_app/backgroundtask", "cancel", *tasks)[1] for _ in range(2)]

    assert reports == [
        [(messages.SUCCESS, "1 of 2 tasks cancelled. A finished task stays as it is.")],
        [(messages.WARNING, "0 of 2 tasks cancelled. A finished task stays as it is.")],
    ]
    assert [*LogEntry.objects.values_list("object_id", "change_message")] == [(str(tasks[0].pk), "Cancelled.")]


def test_a_task_that_is_deleted_meanwhile_keeps_back_no_other(admin_user, monkeypatch):
    columns = {"run": RunFactory(), "tool": "search", "timeout_ms": 1000}
    tasks = [BackgroundTask.objects.create(call_key=key, **columns) for key in "ab"]

    def delete_and_cancel(task):
        BackgroundTask.objects.filter(pk=tasks[0].pk).delete()
        return endings.cancel_task(task)

    monkeypatch.setattr(background_tasks, "cancel_task", delete_and_cancel)

    _, reported = run_action(admin_user, "runs_app/backgroundtask", "cancel", *tasks)

    assert reported == [(messages.SUCCESS, "1 of 2 tasks cancelled. A finished task stays as it is.")]


def test_a_base_of_a_team_without_the_role_is_named_before_a_deletion(viewer):
    base = make_base("handbook", "support")

    answer, _ = run_action(viewer, "knowledge_app/knowledgebase", "delete_selected", base)

    assert f"Deleting a knowledge base needs the Publisher role in its team: {base}." in answer.content.decode()


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        ("viewer", {"export"}),
        ("editor", {"export", "pin", "unpin", "index_again", "archive", "unarchive", "cancel"}),
        ("manager", None),
    ],
)
def test_only_actions_are_offered_that_the_role_allows(rf, role, offered):
    request = rf.get("/")
    request.user = member(role, "support", is_staff=True)
    models = (Agent, AgentVersion, McpServer, KnowledgeBase, Dataset, Experiment)
    actions = {name: page for page in map(admin.site.get_model_admin, models) for name in page.get_actions(request)}

    if offered is None:
        expected = {name for page in map(admin.site.get_model_admin, models) for name in page.actions}
        offered = expected | {"delete_selected"}
    assert {*actions} == offered
