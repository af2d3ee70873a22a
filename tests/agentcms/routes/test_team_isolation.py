"""Isolation of teams: every route of tools, knowledge, evaluations and conversations, read from the resolver."""

import json

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from knowledge_app.models import KnowledgeBase
from tests.agentcms.routes.conftest import SECRET, missing, values_of
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.routes import routes_of
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db

APPLICATIONS = ("tools_app", "knowledge_app", "evals_app", "memory_app", "runs_app")
ROUTES = [route for route in routes_of(*APPLICATIONS) if not route.name.startswith("admin:")]
PLAIN = [route for route in ROUTES if not route.parameters]
# What a request needs so that the row is looked up at all.
BODIES = {
    "api-approval": {"decision": "approve"},
    "api-thread-working-memory": {"workingMemory": "x"},
    "api-observe": {"runId": "{run_id}"},
    "api-recover": {"runId": "{run_id}"},
    "api-mcp-accept": {"hash": "0" * 64},
    "api-mcp-resource": {"uri": "x://y"},
    **{name: {"messages": "Hello"} for name in ("api-generate", "api-stream", "api-stream-until-idle")},
}
# Bodies that name a foreign row, of routes without an ID in their path.
NAMED = {
    "api-save-messages": {"messages": [{"threadId": "{thread_id}", "role": "user", "content": "x"}]},
    "api-network-save-messages": {"messages": [{"threadId": "{thread_id}", "role": "user", "content": "x"}]},
    "api-observation-buffer-status": {"threadId": "{thread_id}", "agentId": "{agent_id}"},
    "api-scores": {"score": {"runId": "{run_id}", "scorerId": "x", "score": 1}},
}
REPEATABLE = {"runs:delete_input", "evals:delete_item"}  # what is already gone is deleted with success
DECISION = {"runId": "{run_id}", "toolCallId": "c1", "resumeData": {}, "approved": True}
DECISION |= {"threadId": "{thread_id}", "resourceId": "{resource_id}"}
DECISIONS = [route.name for route in ROUTES if route.module == "runs_app.api.decisions"]
BODIES = {**dict.fromkeys(DECISIONS, DECISION), **BODIES}
STREAMED = "api-background-task-stream"  # never ends; tests of background tasks read it


def body_of(route, values, bodies):
    return json.loads(fill(json.dumps(bodies.get(route.name, {})), values))


def fill(text, values):
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


class Answer:
    """An answer without the IDs that were sent, and the number of its queries."""

    def __init__(self, client, method, address, body, values):
        with CaptureQueriesContext(connection) as queries:
            answer = client.generic(method, address, json.dumps(body), content_type="application/json")
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        self.status, self.queries, self.text = answer.status_code, len(queries), content.decode()
        for value in sorted(map(str, values.values()), key=len, reverse=True):
            self.text = self.text.replace(value, "ID") if len(value) > 2 else self.text


def rows():
    """Return all rows of the applications, without those of callers."""
    models = [model for name in APPLICATIONS for model in apps.get_app_config(name).get_models()]
    return {model.__name__: [*model.objects.order_by("pk").values()] for model in models}


@pytest.fixture
def stranger(team):
    """Return the clients of a manager of another team, by whether a route is of the API."""
    user = member("manager", "elsewhere")
    clients = {True: Client(headers={"Authorization": f"Bearer {api_key(user)}"}), False: Client()}
    clients[False].force_login(user)
    return clients


def test_the_resolver_has_routes_of_each_application():
    assert {route.module.split(".")[0] for route in ROUTES} == {*APPLICATIONS}
    assert len(ROUTES) > 180


def test_what_belongs_to_another_team_answers_as_if_it_did_not_exist(team, stranger):
    before = rows()
    for route in ROUTES:
        if not route.parameters:
            continue
        known = values_of(route, team.values)
        absent = missing(known)
        for method in route.methods:
            first, foreign, nothing = (
                Answer(stranger[route.is_api], method, route.address(values), body_of(route, values, BODIES), values)
                for values in (absent, known, absent)
            )

            case = (method, route.name, first.text[:200])
            assert foreign.status in ({404, 405} if not route.is_api else {404}), case
            assert foreign.status == nothing.status, case
            assert SECRET not in foreign.text, case
            # The same queries: how long an answer takes does not tell either.
            assert foreign.queries == nothing.queries, case
            if route.is_api:
                assert foreign.text == nothing.text, case
    assert rows() == before


def test_lists_have_nothing_of_another_team_whatever_is_named(team, stranger):
    ids = {name: str(value) for name, value in team.values.items()}
    named = {
        "agentId": "agent_id",
        "datasetId": "dataset_id",
        "experimentId": "experiment_id",
        "runId": "run_id",
        "threadId": "thread_id",
        "resourceId": "resource_id",
        "entityId": "agent_id",
        "scorerId": "scorer_id",
        "run": "run_id",
        "a": "experiment_id",
        "b": "experiment_id",
    }
    queries = [
        {},
        *({name: ids[value]} for name, value in named.items()),
        {name: ids[key] for name, key in named.items()},
    ]
    for route in PLAIN:
        if "GET" not in route.methods or route.name == STREAMED:
            continue
        for query in queries:
            answer = stranger[route.is_api].get(f"/{route.path}", {**query, "searchQuery": "x", "ownerId": "support"})
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            text = content.decode()
            for value in sorted(ids.values(), key=len, reverse=True):
                text = text.replace(value, "") if len(value) > 2 else text

            assert answer.status_code < 500, (route.name, query)
            assert SECRET not in text, (route.name, query)


def test_rows_of_another_team_are_refused_in_bodies(team, stranger):
    before = rows()
    for route in ROUTES:
        if route.name in NAMED:
            body = body_of(route, team.values, NAMED)
            answer = Answer(stranger[True], "POST", f"/{route.path}", body, team.values)
            absent = missing(team.values)
            missing_body = body_of(route, absent, NAMED)
            nothing = Answer(stranger[True], "POST", f"/{route.path}", missing_body, absent)

            assert (answer.status, answer.text) == (nothing.status, nothing.text), route.name
            assert answer.status in {400, 403, 404}, (route.name, answer.text)
            assert SECRET not in answer.text
    assert rows() == before


def test_a_row_below_one_of_the_callers_own_is_still_foreign(team, stranger):
    """The parent in the path is the caller's own, the row below it another team's."""
    base = KnowledgeBase.objects.create(key="own-base", name="Own", owner_id="elsewhere")
    server = McpServer.objects.create(key="own-server", title="Own", url="https://x.example.org", owner_id="elsewhere")
    own = {
        "dataset_id": make_dataset({"input": "Own"}, pk="own", owner_id="elsewhere").pk,
        "agent_id": AgentFactory(id="own", owner_id="elsewhere").pk,
        "base_id": base.key,
        "vector_id": base.key,
        "server_id": server.key,
    }
    before, count = rows(), 0
    for route in ROUTES:
        parent, *children = route.parameters or [""]
        if parent not in own or not children or children == ["number"]:
            continue
        known = values_of(route, team.values)
        values = {**known, parent: own[parent]}
        if parent == "dataset_id" and "key" in values:
            values["key"] = own["base_id"]
        for method in route.methods:
            body = body_of(route, values, BODIES)
            answer = Answer(stranger[route.is_api], method, route.address(values), body, values)

            allowed = {200, 302, 404, 405} if route.name in REPEATABLE else {404, 405}
            assert answer.status in allowed, (method, route.name, answer.status, answer.text[:300])
            assert SECRET not in answer.text, (method, route.name)
            count += 1
    assert rows() == before
    assert count > 15
