"""The API reference at /api/docs: what it says about each route."""

import ast
import html
import inspect
import re
from unittest.mock import Mock

import httpx
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentcms.cache import cache_result
from agentcms.openapi import reference, views
from agentcms.openapi.document import build_document
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key

OPERATIONS = {
    operation["operationId"]: (method, path, operation)
    for path, methods in build_document()["paths"].items()
    for method, operation in methods.items()
}


def routes():
    return [route for group in reference.route_groups("https://cms.example.org") for route in group.routes]


@pytest.fixture
def page(db, client: Client):
    client.force_login(UserFactory())
    return client.get("/api/docs").content.decode()


def section(page, route_id):
    """The part of the page about a route, without markup."""
    text = page.partition(f'id="{route_id}"')[2].partition('<details class="section api-route"')[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_the_list_of_routes_links_to_each_route(page):
    index = page.partition('aria-label="Routes"')[2].partition("</nav>")[0]

    assert re.findall(r'href="#(\w+)"', index) == [route.id for route in routes()] + ["schemas"]
    assert {route.id for route in routes()} == set(OPERATIONS)


def test_every_link_within_the_page_has_a_target(page):
    targets = set(re.findall(r'id="([^"]+)"', page))

    assert set(re.findall(r'href="#([^"]+)"', page)) - targets == set()


def test_fields_of_answers_are_not_required_of_the_reader(page):
    text = section(page, "getVersion")
    parameters, _, answer = text.partition("Response 200")

    assert "Required." in parameters
    assert "Required." not in answer


def test_a_route_says_what_it_does_and_takes_and_returns(page):
    text = section(page, "listVersions")

    assert "List versions. The newest first." in text
    assert "agentId text Required. The ID of the agent, percent-encoded. In the path." in text
    assert "perPage integer, 1 to 1000 Entries on a page. Default: 20 . In the query." in text
    assert 'orderBy[field] "versionNumber" · "createdAt" The order of the entries. Default: "versionNumber" .' in text
    assert "versions list of Version The versions of the page." in text
    assert "404 Not found, or no access." in text


def test_a_body_names_its_fields_with_types_and_defaults(page):
    text = section(page, "createAgent")

    assert "Needs the editor role for the owner." in text
    assert "name text, at most 200 characters Required. The name that people see." in text
    assert "model ModelChoice Required. The model that answers, and its settings." in text
    assert "autoPublish" not in text  # version 1 is always live
    assert "409 The request conflicts with the current state." in text
    text = section(page, "updateAgent")
    assert "autoPublish boolean or null Publish the change. With false it becomes a draft. Default: true ." in text


def test_fields_of_objects_are_named_by_their_path(page):
    assert "diffs[].previousValue any JSON value" in section(page, "compareVersions")
    assert "memory.thread.id text" in section(page, "generate")


@pytest.mark.parametrize("route", routes(), ids=lambda route: route.id)
def test_every_route_parameter_and_field_is_described(route):
    fields = [*route.parameters, *(route.body.fields if route.body else [])]
    fields += [field for response in route.responses for field in response.fields]

    assert route.description, "Describe it in its section of agentcms/openapi"
    missing = [field.path for field in fields if not field.description]
    assert missing == [], "Describe them there or in agentcms/openapi/field_descriptions.py"
    assert [field.path for field in fields if not field.type] == []


@pytest.mark.parametrize("route", routes(), ids=lambda route: route.id)
def test_every_route_has_an_example_in_three_languages(route):
    assert [example.label for example in route.examples] == ["curl", "Python", "JavaScript"]
    for example in route.examples:
        assert "https://cms.example.org/api/" in example.code
        assert "{" not in example.code.partition("cms.example.org")[2].partition("\n")[0].rstrip(" {\\")


def test_httpx_takes_the_arguments_of_every_python_example():
    for route in routes():
        (code,) = [example.code for example in route.examples if example.language == "python"]
        calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
        (call,) = [call for call in calls if "timeout" in [keyword.arg for keyword in call.keywords]]

        inspect.signature(getattr(httpx, call.func.attr)).bind(
            *call.args, **{word.arg: word for word in call.keywords}
        )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("route_id", "path"),
    [
        ("listAgents", "/api/stored/agents"),
        ("listVersions", "/api/stored/agents/concierge/versions"),
        ("listActivations", "/api/stored/agents/concierge/activations"),
        ("listDeletedAgents", "/api/stored/deleted-agents"),
        ("listJobs", "/api/jobs"),
        ("listRuns", "/api/runs"),
    ],
)
def test_the_documented_defaults_are_those_of_the_api(route_id, path):
    AgentFactory(id="concierge")
    caller = Caller(api_key(UserFactory(is_superuser=True)))
    (route,) = [route for route in routes() if route.id == route_id]
    (default,) = [field.default for field in route.parameters if field.path == "perPage"]

    assert str(caller.get(path).body["perPage"]) == default


@pytest.mark.django_db
def test_the_examples_of_bodies_are_accepted():
    caller = Caller(api_key(UserFactory(is_superuser=True)))
    AgentFactory(id="concierge")
    version = caller.get("/api/stored/agents/concierge/versions").body["versions"][0]["id"]

    statuses = {}
    for route_id, (method, path, operation) in OPERATIONS.items():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        if "example" in content and "/stored/agents" in path:
            address = path.replace("{agentId}", "concierge").replace("{versionId}", version)
            statuses[route_id] = getattr(caller, method)(address, content["example"]).status_code

    assert set(statuses.values()) == {200, 201}
    assert len(statuses) == 8


@pytest.mark.django_db
def test_the_page_is_rendered_once_and_reads_no_agents(client, monkeypatch):
    render = Mock(wraps=views.render_reference.__wrapped__)
    monkeypatch.setattr(views, "render_reference", cache_result(render))
    client.force_login(UserFactory())
    client.get("/api/docs")

    with CaptureQueriesContext(connection) as queries:
        client.get("/api/docs")

    page = client.get("/api/docs", headers={"Host": "localhost:8080"}).content.decode()

    assert render.call_count == 1
    assert "curl http://localhost:8080/api/stored/agents" in page
    assert views.ANY_ORIGIN not in page
    assert [query for query in queries if "agents_app" in query["sql"]] == []


@pytest.mark.django_db
def test_the_page_is_the_same_for_every_user(client):
    pages = []
    for is_superuser in (False, True):
        client.force_login(UserFactory(is_superuser=is_superuser))
        pages.append(
            client.get("/api/docs").content.decode().partition('class="api-layout"')[2].partition("</main>")[0]
        )

    assert pages[0] == pages[1] != ""
    assert "nonce" not in pages[0]
    assert "style=" not in pages[0]
