"""The OpenAPI document and generated requests that follow it."""

import math
import os
import re

import pytest
import schemathesis
from django.test import Client
from django.urls import resolve
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from agentcms.openapi.document import build_document, component_schemas, section_schemas
from agentcms.openapi.idempotency import KEY_PARAMETER, WITHOUT_KEY
from agentcms.openapi.sections import SECTIONS
from agentcms.wsgi import application
from agents_app.api.idempotency import TAKES_KEY
from agents_app.models import Agent
from jobs_app import runner
from jobs_app.models import Job
from runs_app.background import task_streams
from runs_app.models import AgentRun
from tests.api_client import Caller, agent_path
from tests.factories import UserFactory, api_key
from tests.routes import all_routes
from tests.runs_app.factories import RunFactory

CALLS = 10_000 if os.environ.get("DRILL") else 300


def path_with_names(path):
    return path.replace("<str:number>", "{number}").replace("<str:entity_type>", "{entityType}")


def test_every_route_and_method_is_documented():
    ours = {
        (method.lower(), "/" + re.sub(r"<str:(\w+)_id>", r"{\1Id}", path_with_names(route.path)))
        for route in all_routes()
        for method in route.methods
        if route.is_api and route.name not in ("", "api-docs")
    }

    assert ours == {(method, path) for path, methods in build_document()["paths"].items() for method in methods}


def test_the_document_is_openapi_3_1(api):
    schema = api.get("/api/schema").body

    assert schema["openapi"] == "3.1.0"
    assert schema == build_document()


def test_a_name_of_a_schema_means_one_thing():
    by_name = {}
    for section in SECTIONS:
        for name, schema in section_schemas(section).items():
            by_name.setdefault(name, []).append(schema)

    assert [name for name, schemas in by_name.items() if any(schema != schemas[0] for schema in schemas)] == []


def test_schemas_have_readable_names_of_which_no_two_differ_by_digits_only():
    """Generators make classes of them. Pydantic numbers names that are taken, and joins those of type parameters."""
    names = [*component_schemas()]

    assert [name for name in names if not re.fullmatch(r"([A-Z]+[a-z]+){1,6}", name)] == []
    assert len({name.casefold() for name in names}) == len(names)


def test_a_field_has_the_text_of_its_own_section():
    schemas = build_document()["components"]["schemas"]

    assert "messages" in schemas["MemoryResults"]["properties"]["results"]["description"]
    assert "results of the page" in schemas["ExperimentResultPage"]["properties"]["results"]["description"]
    assert "ACP_COMMANDS" in schemas["AcpAgentCreate"]["properties"]["commandKey"]["description"]
    described = {
        kind: schemas[f"{kind}Create"]["properties"]["description"]["description"]
        for kind in ("Agent", "Dataset", "Experiment", "Scorer")
    }
    assert described == {
        "Agent": "What the agent is for.",
        "Dataset": "What the dataset is for.",
        "Experiment": "What the experiment is for.",
        "Scorer": "What the scorer measures.",
    }


# Responses in the forms of the published client and of the registry, which have no size.
WITHOUT_PAGE_SIZE = {"/api/agents", "/api/mcp/v0/servers"}


def documented_page_sizes():
    """Yield the lists that need no other object, with the default size of their pages."""
    for path, methods in build_document()["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", []):
            if parameter["name"] == "perPage" and "{" not in path and path not in WITHOUT_PAGE_SIZE:
                yield path, parameter["schema"]["default"]


@pytest.mark.parametrize(("path", "size"), [*documented_page_sizes()])
def test_a_list_has_the_documented_page_size(root, path, size):
    body = root.get(path).body

    assert body.get("pagination", body)["perPage"] == size


def test_the_schema_of_an_agent_names_its_fields(api):
    schema = api.get("/api/stored/agent-schema").body

    assert {"id", "name", "instructions", "model"} == set(schema["required"])
    assert "defaultOptions" in schema["properties"]


def operations():
    return {
        operation["operationId"]: operation
        for methods in build_document()["paths"].values()
        for operation in methods.values()
    }


def test_a_body_with_required_fields_is_required():
    bodies = {name: operation["requestBody"] for name, operation in operations().items() if "requestBody" in operation}

    required = {name for name, body in bodies.items() if body["required"]}
    assert {"sendMessage", "saveMessages", "createMcpClient", "generate", "importAgents", "addParticipant"} <= required
    assert required.isdisjoint({"updateAgent", "restoreVersion", "createThread", "addDocument"})


def test_a_write_may_conflict_and_who_takes_part_already_is_a_200():
    assert "409" in operations()["deleteDataset"]["responses"]
    assert "409" not in operations()["listDatasets"]["responses"]
    assert {"200", "201"} <= operations()["addParticipant"]["responses"].keys()


def test_each_post_takes_an_idempotency_key_or_has_a_reason_why_not():
    """A new route has one of the decorators of `agents_app.api.idempotency`, or is in `WITHOUT_KEY`."""
    posts = {path: methods["post"] for path, methods in build_document()["paths"].items() if "post" in methods}

    def takes_key(path):
        view = resolve(re.sub(r"{\w+}", "1", path)).func.cls
        return hasattr(view.post, TAKES_KEY)

    without = {post["operationId"] for path, post in posts.items() if not takes_key(path)}
    documented = {post["operationId"] for post in posts.values() if KEY_PARAMETER in post["parameters"]}
    assert without == WITHOUT_KEY.keys()
    assert documented == {post["operationId"] for post in posts.values()} - without


def test_a_parameter_has_the_meaning_of_its_route():
    def texts(name):
        return {parameter["name"]: parameter["description"] for parameter in operations()[name]["parameters"]}

    assert texts("listScorers")["authorId"] == "Only scorers that the user with this name has created."
    assert texts("listBackgroundTasks")["fromDate"] == "Only tasks of this time or later."
    assert {"networkId", "threadId", "resourceId"} <= texts("deleteNetworkMessages").keys()
    assert "agentId" not in texts("getNetworkThread")
    for name in ("exportAgents", "createDataset", "listExperiments", "updateGate", "createScore", "listTraces"):
        assert "strict" in texts(name)


@pytest.mark.django_db
def test_the_reference_page_names_every_operation(client: Client):
    client.force_login(UserFactory())

    page = client.get("/api/docs").content.decode()

    for path in build_document()["paths"]:
        assert path in page


# --- Calls made up from the description


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return str(value).encode("utf-8", "replace")


described = schemathesis.openapi.from_dict(build_document())
described.app = application


def not_an_undocumented_server_error(context, response, case):
    if response.status_code != 501 or "501" not in case.operation.definition.raw["responses"]:
        not_a_server_error(context, response, case)


CHECKS = [
    not_an_undocumented_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture
def root(idle_engine):
    caller = Caller(api_key(UserFactory(is_superuser=True)))
    caller.create()
    caller.patch(agent_path(), {"name": "Two"})
    export(caller)
    return caller


def export(caller):
    """Return the finished job of an export."""
    return runner.run_claimed(caller.post("/api/stored/agent-export").body["id"])


def described_operations():
    # `described.parametrize()` gives all its tests one name, and pytest-xdist runs only one test of a name.
    return [result.ok() for result in described.get_all_operations()]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("operation", described_operations(), ids=lambda operation: operation.label)
def test_generated_requests_match_the_document(root, operation, monkeypatch):
    monkeypatch.setattr(task_streams, "TASK_STREAM_SECONDS", 0)  # it would stay open

    @given(case=operation.as_strategy())
    @hypothesis_settings(
        max_examples=math.ceil(CALLS / sum(len(section.operations) for section in SECTIONS)),
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case):
        name_existing_objects(root, case)
        case.call_and_validate(headers={"Authorization": root.authorization}, checks=CHECKS)

    check()


def name_existing_objects(root, case):
    """Let half of the requests name objects that exist."""
    agent = Agent.objects.filter(pk="concierge").first() or Agent.objects.get(pk=root.create().body["id"])
    run = AgentRun.objects.filter(agent=agent, finished_at__isnull=False).first() or RunFactory(agent=agent)
    known = {"agentId": "concierge", "versionId": str(agent.active_version_id), "runId": str(run.pk)}
    job = Job.objects.filter(state=Job.State.DONE).first() or export(root)
    known["jobId"] = str(job.pk)
    body = case.body if isinstance(case.body, dict) else {}
    for values in (case.path_parameters, body):
        for name in known.keys() & values.keys():
            if sum(str(values[name]).encode("utf-8", "replace")) % 2:
                values[name] = known[name]
