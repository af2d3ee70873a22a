"""The permissions of every API route for every kind of caller. A route without a case fails."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.utils import timezone

from access_app.models import ApiKey
from access_app.role import Role
from agents_app.models import Agent
from evals_app.api.urls import urlpatterns as evals_urlpatterns
from knowledge_app.api.urls import urlpatterns as knowledge_urlpatterns
from memory_app.api.urls import urlpatterns as memory_urlpatterns
from tests.api_client import AGENTS, MODEL, Caller, agent_path, version_path
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.routes import all_routes
from tools_app.api.urls import urlpatterns as mcp_urlpatterns

TESTS = Path(__file__).parents[2]
ROLES = ["viewer", "editor", "publisher", "manager"]
NEW = {"id": "new", "name": "New", "instructions": "", "model": MODEL}


class Case(NamedTuple):
    """A request with the lowest role that may send it."""

    method: str
    path: str  # relative to the agent; {version} is a version that is neither live nor head
    role: str
    body: Any = None


# By the name of the route.
CASES = {
    "api-agent": [
        Case("GET", "", "viewer"),
        Case("PATCH", "", "publisher", {"name": "New"}),
        Case("PATCH", "", "editor", {"name": "New", "autoPublish": False}),
        Case("DELETE", "", "publisher"),
    ],
    "api-dependents": [Case("GET", "dependents", "viewer")],
    "api-duplicate": [Case("POST", "duplicate", "editor", {"id": "copy"})],
    "api-versions": [Case("GET", "versions", "viewer"), Case("POST", "versions", "editor", {"name": "Mine"})],
    "api-compare": [
        Case("GET", "versions/compare?from={version}&to=live", "viewer"),
        Case("GET", "versions/compare?from=head&to={version}", "viewer"),
    ],
    "api-version": [
        Case("GET", "versions/{version}", "viewer"),
        Case("PATCH", "versions/{version}", "editor", {"pinned": True}),
        Case("DELETE", "versions/{version}", "publisher"),
    ],
    "api-activate": [Case("POST", "versions/{version}/activate", "publisher")],
    "api-restore": [
        Case("POST", "versions/{version}/restore", "publisher"),
        Case("POST", "versions/{version}/restore", "editor", {"autoPublish": False}),
    ],
    "api-discard-draft": [Case("POST", "discard-draft", "editor")],
    "api-activations": [Case("GET", "activations", "viewer")],
    "api-undo": [Case("POST", "activations/undo", "publisher")],
    "api-archive": [Case("POST", "archive", "publisher")],
    "api-unarchive": [Case("POST", "unarchive", "publisher")],
}
# Routes without an agent have their own tests, here or in the named file of `tests/`.
OTHERS = {
    "api-agents": "here",
    **dict.fromkeys(
        ("api-deleted-agents", "api-deleted-agent", "api-restore-deleted-agent"), "versions_app/api/test_trash.py"
    ),
    "api-export": "versions_app/api/test_exchange.py",
    "api-import": "versions_app/api/test_exchange.py",
    "api-job": "versions_app/api/test_exchange.py",
    "api-job-file": "versions_app/api/test_exchange.py",
    "api-jobs": "versions_app/api/test_job_limits.py",
    "api-job-records": "versions_app/api/test_import_reports.py",
    "api-schema": "agentcms/openapi/test_document.py",
    "api-docs": "agentcms/openapi/test_document.py",
    "api-agent-schema": "agentcms/openapi/test_document.py",
    **dict.fromkeys(("api-approvals", "api-approval"), "runs_app/api/test_approvals.py"),
    **dict.fromkeys(
        (
            "api-background-tasks",
            "api-background-task",
            "api-background-task-stream",
            "api-background-task-cancel",
        ),
        "runs_app/background/test_api.py",
    ),
    **dict.fromkeys(
        (
            "api-approve-tool-call",
            "api-decline-tool-call",
            "api-approve-tool-call-generate",
            "api-decline-tool-call-generate",
            "api-resume-stream",
            "api-resume-stream-until-idle",
            "api-send-tool-approval",
            "api-network",
            "api-approve-network-tool-call",
            "api-decline-network-tool-call",
            "api-resume-network",
        ),
        "runs_app/api/decisions/test_refusals.py",
    ),
    **dict.fromkeys((pattern.name for pattern in memory_urlpatterns), "memory_app/api/test_realm_isolation.py"),
    **dict.fromkeys((pattern.name for pattern in evals_urlpatterns), "evals_app/api/test_datasets.py"),
    **dict.fromkeys((pattern.name for pattern in mcp_urlpatterns), "tools_app/api/test_mcp_servers.py"),
    **dict.fromkeys(
        ("api-signals", "api-send-message", "api-queue-message", "api-subscribe", "api-abort-thread"),
        "runs_app/api/test_thread_signals.py",
    ),
    "api-resource-export": "runs_app/api/test_personal_data.py",
    "api-resource-forget": "runs_app/api/test_personal_data.py",
    **dict.fromkeys((pattern.name for pattern in knowledge_urlpatterns), "knowledge_app/api/test_knowledge.py"),
    **dict.fromkeys(
        (name for pattern in mcp_urlpatterns if (name := str(pattern.name)).startswith("api-acp")),
        "tools_app/api/test_acp_agents.py",
    ),
    "api-suspended-runs": "runs_app/api/test_suspended_runs.py",
    **dict.fromkeys(
        (
            "api-running-agents",
            "api-running-agent",
            "api-providers",
            "api-generate",
            "api-stream",
            "api-observe",
            "api-runs",
            "api-run",
            "api-run-events",
            "api-run-steps",
            "api-recover",
            "api-stream-until-idle",
            "api-run-stream",
            "api-run-cancel",
        ),
        "runs_app/api/test_permissions.py",
    ),
}

AGENT_CASES = [case for cases in CASES.values() for case in cases]


API_ROUTES = [route for route in all_routes() if route.is_api and route.name]


def test_every_method_of_every_route_has_a_case():
    expected = {(route.name, method) for route in API_ROUTES if route.name not in OTHERS for method in route.methods}

    assert expected == {(name, case.method) for name, cases in CASES.items() for case in cases}


@pytest.mark.parametrize("path", sorted({*OTHERS.values()} - {"here"}))
def test_the_tests_of_other_routes_exist(path):
    assert (TESTS / path).is_file()


def test_no_route_is_open_to_anonymous_callers():
    for route in API_ROUTES:
        for method in route.methods:
            answer = Caller().call(method, route.address(dict.fromkeys(route.parameters, "x")))
            assert (route.name, method, answer.status_code) == (route.name, method, 401)


# --- Callers


def key_of_publisher(**changes: Any) -> str:
    key = api_key(member("publisher"))
    ApiKey.objects.update(**changes)
    return key


def create_key_with_role(user: Any, role: str) -> str:
    return api_key(user, role)


CALLERS: dict[str, tuple[Callable[[], str], str | int]] = {
    # How the key is created, and its role in the shared space or the status of every response.
    "anonymous": (lambda: "", 401),
    "wrong key": (lambda: "acms_00000000_" + "x" * 43, 401),
    "expired key": (lambda: key_of_publisher(expires_at=timezone.now() - timedelta(seconds=1)), 401),
    "revoked key": (lambda: key_of_publisher(revoked_at=timezone.now()), 401),
    "key of a disabled user": (lambda: api_key(key_of_disabled_user()), 401),
    "nobody's member": (lambda: api_key(UserFactory()), 404),
    "stranger": (lambda: api_key(member("manager", "elsewhere")), 404),
    "viewer": (lambda: api_key(member("viewer")), "viewer"),
    "editor": (lambda: api_key(member("editor")), "editor"),
    "publisher": (lambda: api_key(member("publisher")), "publisher"),
    "manager": (lambda: api_key(member("manager")), "manager"),
    "superuser": (lambda: api_key(UserFactory(is_superuser=True)), "manager"),
    "manager with a viewer's key": (lambda: create_key_with_role(member("manager"), "viewer"), "viewer"),
    "publisher with an editor's key": (lambda: create_key_with_role(member("publisher"), "editor"), "editor"),
    "superuser with a viewer's key": (
        lambda: create_key_with_role(UserFactory(is_superuser=True), "viewer"),
        "viewer",
    ),
    "superuser with an editor's key": (
        lambda: create_key_with_role(UserFactory(is_superuser=True), "editor"),
        "editor",
    ),
    "viewer with a manager's key": (lambda: create_key_with_role(member("viewer"), "manager"), "viewer"),
}


def key_of_disabled_user() -> Any:
    user = member("publisher")
    user.is_active = False
    user.save()
    return user


def expected(acts_as: str | int | None, needed: str) -> int:
    """Return the expected kind of response for a caller."""
    if isinstance(acts_as, int):
        return acts_as
    return 200 if ROLES.index(str(acts_as)) >= ROLES.index(needed) else 403


@pytest.fixture
def agent() -> Any:
    """Return a shared agent with three versions, the second of which was live before."""
    agent = AgentFactory(id="it")
    for text in ("Two", "Three"):
        agent.edit({"instructions": text})
    return agent


def all_rows() -> Any:
    return [
        list(Agent.objects.order_by("pk").values()),
        [list(agent.versions.values()) + list(agent.activations.values()) for agent in Agent.objects.order_by("pk")],
    ]


@pytest.mark.parametrize("who", CALLERS)
def test_each_role_is_allowed_exactly_its_actions(agent, who):
    make, acts_as = CALLERS[who]
    version = str(agent.versions.get(version_number=2).pk)
    before = all_rows()

    # Refused requests change nothing, so all of them use one agent. Allowed requests follow.
    caller = Caller(make())
    for case in AGENT_CASES:
        status = expected(acts_as, case.role)
        if status == 200:
            continue
        path = f"{agent_path('it')}/{case.path.format(version=version)}".rstrip("/")
        answer = caller.call(case.method, path, case.body)
        assert answer.status_code == status, (case, answer.body)
        assert all_rows() == before, case
        if status == 403:
            assert f"needs the {Role(case.role).label} role" in answer.body["error"]
        if status == 404:
            assert answer.body["error"] == "Stored agent with id it not found"
        if status == 401:
            assert answer.body == {"error": "Invalid or expired token", "code": "unauthorized"}
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("case", AGENT_CASES, ids=lambda case: f"{case.method} {case.path} {case.role}")
def test_the_lowest_allowed_role_is_accepted(agent, case):
    version = str(agent.versions.get(version_number=2).pk)
    path = f"{agent_path('it')}/{case.path.format(version=version)}".rstrip("/")

    assert Caller(api_key(member(case.role))).call(case.method, path, case.body).status_code in (200, 201)


@pytest.mark.parametrize("case", AGENT_CASES, ids=lambda case: f"{case.method} {case.path} {case.role}")
def test_a_hidden_agent_answers_exactly_like_a_missing_one(agent, case):
    version = str(agent.versions.get(version_number=2).pk)
    caller = Caller(api_key(member("manager", "elsewhere")))

    answers = []
    for agent_id in ("it", "no"):
        path = f"{agent_path(agent_id)}/{case.path.format(version=version)}".rstrip("/")
        answer = caller.call(case.method, path, case.body)
        answers.append(
            (answer.status_code, answer.content.replace(f"id {agent_id} ".encode(), b"id ID "), sorted(answer.headers))
        )

    assert answers[0] == answers[1]


# --- The list, and new agents


@pytest.mark.parametrize("who", CALLERS)
def test_a_list_contains_and_counts_only_visible_agents(agent, who):
    make, acts_as = CALLERS[who]

    answer = Caller(make()).get(AGENTS)

    if acts_as == 401:
        assert answer.status_code == 401
    else:
        assert answer.body["total"] == len(answer.body["agents"]) == (0 if acts_as == 404 else 1)
    for query in ("?search=concierge", "?ownerId=", "?cursor=", '?metadata={"a":1}', "?orderBy[field]=name"):
        if acts_as == 404:
            assert Caller(make()).get(AGENTS + query).body["agents"] == []


@pytest.mark.parametrize("who", CALLERS)
def test_an_editor_creates_agents(agent, who):
    make, acts_as = CALLERS[who]

    answer = Caller(make()).post(AGENTS, {**NEW, "ownerId": ""})

    status = 403 if acts_as == 404 else expected(acts_as, "editor")
    assert answer.status_code == (201 if status == 200 else status)
    assert Agent.objects.count() == (2 if status == 200 else 1)


def test_a_new_agent_belongs_to_the_only_owner_of_the_caller():
    user = member("viewer", "seen")
    user.memberships.create(owner_id="acme", role="editor")

    assert Caller(api_key(user)).post(AGENTS, NEW).body["ownerId"] == "acme"


def test_a_caller_with_several_owners_must_name_one():
    user = member("editor", "one")
    user.memberships.create(owner_id="two", role="publisher")
    caller = Caller(api_key(user))

    assert caller.post(AGENTS, NEW).body["issues"][0]["field"] == "ownerId"
    assert caller.post(AGENTS, {**NEW, "ownerId": "two"}).body["ownerId"] == "two"
    assert caller.post(AGENTS, {**NEW, "id": "x", "ownerId": "three"}).status_code == 403


def test_a_superuser_creates_shared_agents_and_agents_of_owners_without_members():
    caller = Caller(api_key(UserFactory(is_superuser=True)))

    assert caller.post(AGENTS, NEW).body["ownerId"] == ""
    assert caller.post(AGENTS, {**NEW, "id": "x", "ownerId": "nobody yet"}).body["ownerId"] == "nobody yet"


# --- Handing over


@pytest.mark.parametrize(
    ("here", "there", "status"),
    [
        ("publisher", "publisher", 200),
        ("publisher", "editor", 403),
        ("editor", "publisher", 403),
        ("publisher", None, 403),
    ],
)
def test_changing_the_owner_needs_publisher_for_both_owners(agent, here, there, status):
    user = member(here)
    if there:
        user.memberships.create(owner_id="acme", role=there)

    answer = Caller(api_key(user)).patch(agent_path("it"), {"ownerId": "acme", "autoPublish": False})

    agent.refresh_from_db()
    assert (answer.status_code, agent.owner_id) == (status, "acme" if status == 200 else "")
    assert agent.versions.count() == 3


def test_changing_the_owner_creates_no_version_and_changes_the_etag(agent):
    caller = Caller(api_key(UserFactory(is_superuser=True)))
    before = caller.get(agent_path("it"))

    after = caller.patch(agent_path("it"), {"ownerId": "acme"})

    assert (after.body["headVersionNumber"], after.body["ownerId"]) == (3, "acme")
    assert after.body["revision"] == before.body["revision"] + 1
    assert after.headers["ETag"] != before.headers["ETag"]


def test_an_editor_who_publishes_is_told_to_save_a_draft(agent, editor):
    assert "autoPublish: false" in editor.patch(agent_path("it"), {"name": "New"}).body["error"]


@pytest.mark.parametrize(
    ("others", "hint"),
    [({}, ""), ({"name": "New"}, " Send autoPublish: false without ownerId to save the other fields as a draft.")],
)
def test_an_editor_who_changes_the_owner_is_told_to_save_only_the_other_fields(agent, editor, others, hint):
    refused = editor.patch(agent_path("it"), {"ownerId": "acme", **others})

    assert refused.body["error"] == f"This needs the Publisher role in Shared.{hint}"
    assert not others or editor.patch(agent_path("it"), {**others, "autoPublish": False}).status_code == 200


def test_a_viewer_who_publishes_is_not_told_to_save_a_draft(agent, viewer):
    restore = version_path(str(agent.active_version_id), "restore", agent_id="it")

    for answer in (viewer.patch(agent_path("it"), {"name": "New"}), viewer.post(restore)):
        assert answer.body["error"] == "This needs the Publisher role in Shared."


def test_duplicating_needs_a_role_for_the_target_owner(agent):
    user = member("viewer")
    user.memberships.create(owner_id="acme", role="editor")
    caller = Caller(api_key(user))

    assert caller.post(agent_path("it", "duplicate"), {"id": "copy"}).status_code == 403
    assert caller.post(agent_path("it", "duplicate"), {"id": "copy", "ownerId": "acme"}).body["ownerId"] == "acme"


def test_concurrent_users_cannot_read_or_change_agents_of_each_other():
    ann, bob = (Caller(api_key(member("manager", owner))) for owner in ("ann", "bob"))
    for caller, agent_id in ((ann, "anns"), (bob, "bobs")):
        caller.post(AGENTS, {**NEW, "id": agent_id})
    version = str(Agent.objects.get(pk="bobs").active_version_id)
    before = all_rows()

    for case in AGENT_CASES:
        for agent_id in ("bobs", "anns"):
            path = f"{agent_path(agent_id)}/{case.path.format(version=version)}".rstrip("/")
            answer = (bob if agent_id == "anns" else ann).call(case.method, path, case.body)
            assert answer.status_code == 404, (case, answer.body)
    for case in AGENT_CASES:
        if "{version}" in case.path:  # Bob's version below Ann's agent
            answer = ann.call(case.method, f"{agent_path('anns')}/{case.path.format(version=version)}", case.body)
            assert answer.status_code == 404
            assert answer.body["error"] == f"Version with id {version} not found for agent anns"

    assert all_rows() == before
    assert ann.get(AGENTS).body["total"] == bob.get(AGENTS).body["total"] == 1
    assert ann.post(AGENTS, {**NEW, "id": "bobs"}).body["error"] == "Agent with id bobs already exists"
