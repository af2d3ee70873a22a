"""Client tools whose schemas grow when their references are replaced."""

import threading
import time

import pytest
from pydantic_ai import InlineDefsJsonSchemaTransformer

from runs_app.models import AgentRun, ModelProvider
from runs_app.providers.schema_cache import caching_transformer
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO
from tests.runs_app.providers.conftest import provider_stub, running_provider_stub  # noqa: F401  fixtures

pytestmark = pytest.mark.usefixtures("idle_engine")

PATH = "/api/agents/concierge/generate"


@pytest.fixture
def editor():
    AgentFactory(id="concierge", model=DEMO)
    return Caller(api_key(member("editor")))


def node(reference, **more):
    return {"type": "object", "properties": {side: {"$ref": reference, **more} for side in ("left", "right")}}


def doubling(levels, **more):
    """Return a schema of 2 kB whose references double at each level."""
    definitions = {f"d{level}": node(f"#/$defs/d{level + 1}", **more) for level in range(levels)}
    definitions[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def doubling_at_the_root(levels):
    """Return the same with a reference in place of properties."""
    schema = doubling(levels)
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": schema["$defs"]}


def doubling_by_pointers(levels):
    """Return the same without definitions: each property refers twice to the one before it."""
    properties = {"p0": {"type": "string"}}
    for level in range(levels):
        properties[f"p{level + 1}"] = node(f"#/properties/p{level}")
    return {"type": "object", "properties": properties}


def hidden_circle(levels):
    """Return a schema whose definitions refer to themselves where no model looks."""
    schema = doubling(levels)
    for name, definition in schema["$defs"].items():
        definition["x-more"] = {"$ref": f"#/$defs/{name}"}
    return schema


def complete_graph(size):
    """Return a schema in which each definition refers to each other one."""
    definitions = {
        f"d{number}": {
            "type": "object",
            "properties": {f"p{other}": {"$ref": f"#/$defs/d{other}", "title": "x"} for other in range(size)},
        }
        for number in range(size)
    }
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def chain(length):
    """Return a schema whose definitions refer to the next one."""
    definitions = {f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}]} for number in range(length)}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


@pytest.mark.parametrize(
    "schema",
    [
        doubling(14),
        doubling(40),
        doubling(14, description="One side."),
        doubling_at_the_root(40),
        doubling_by_pointers(16),
        hidden_circle(14),
        complete_graph(12),
        chain(5000),
        {"type": "object", "properties": {"x": {"enum": ["word"] * 40_000}}},
        {
            "type": "object",
            "properties": {f"p{number}": {"$ref": "#/$defs/long"} for number in range(300)},
            "$defs": {"long": {"type": "string", "description": "x" * 1000}},
        },
    ],
    ids=[
        "14 levels",
        "40 levels",
        "siblings",
        "root",
        "pointers",
        "hidden circle",
        "graph",
        "chain",
        "plain",
        "long texts",
    ],
)
def test_a_schema_that_grows_is_refused_with_its_path(editor, schema):
    started = time.process_time()

    answer = editor.post(PATH, {"messages": "Hello", "clientTools": {"small": {}, "tree": {"inputSchema": schema}}})

    assert answer.status_code == 400
    assert [issue["field"] for issue in answer.body["issues"]] == ["clientTools.tree"]
    assert "Refer to large definitions from fewer places" in answer.body["issues"][0]["message"]
    assert AgentRun.objects.count() == 0
    assert time.process_time() - started < 5


def test_all_schemas_of_a_call_are_counted_together(editor):
    tools = {f"t{number}": {"inputSchema": doubling(9)} for number in range(20)}  # 40 kB each

    answer = editor.post(PATH, {"messages": "Hello", "clientTools": tools})

    assert answer.status_code == 400
    assert answer.body["issues"][0]["field"] in [f"clientTools.t{number}" for number in range(3, 10)]


@pytest.mark.parametrize(
    "schema",
    [
        doubling(5),
        complete_graph(4),
        {"$defs": {"node": node("#/$defs/node")}, "$ref": "#/$defs/node"},
        {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/gone"}, "y": {"$ref": 7}}},
        {"definitions": {"a/b": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/a/b"}}},
    ],
    ids=["shared", "small graph", "recursive", "root", "unknown", "slash"],
)
def test_ordinary_schemas_are_accepted(editor, schema):
    tools = {f"t{number}": {"inputSchema": schema} for number in range(3)}

    assert editor.post(PATH, {"messages": "Hello", "clientTools": tools}).status_code == 200


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ({"description": "a\0b"}, "clientTools.x.description"),
        ({"inputSchema": {"type": "a\0b"}}, "clientTools.x.inputSchema.type"),
    ],
)
def test_values_that_no_database_stores_are_refused(editor, tool, path):
    answer = editor.post(PATH, {"messages": "Hello", "clientTools": {"x": tool}})

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, path)


def test_schemas_are_converted_once_and_not_on_the_event_loop(editor, provider_stub, monkeypatch):  # noqa: F811
    threads = []
    convert = InlineDefsJsonSchemaTransformer.walk

    def walk(transformer):
        threads.append(threading.current_thread().name)
        return convert(transformer)

    caching_transformer(InlineDefsJsonSchemaTransformer)  # its class tries one schema, once in each process
    monkeypatch.setattr(InlineDefsJsonSchemaTransformer, "walk", walk)
    ModelProvider.objects.create(key="house", title="House", base_url=f"{provider_stub.url}/v1")
    AgentFactory(id="porter", model={"provider": "house", "name": "qwen/qwen3-32b"}, tools=["word-count"])
    tools = {f"t{number}": {"inputSchema": doubling(5, title=f"T{number}")} for number in range(10)}

    answer = editor.post("/api/agents/porter/generate", {"messages": "How many words?", "clientTools": tools})

    assert (answer.status_code, answer.body["text"]) == (200, "Three words.")
    requests = [str(request["body"]["tools"]) for request in provider_stub.received_requests()]
    assert len(requests) == 2
    assert not any("$ref" in tools for tools in requests)
    converted = [name for name in threads if not name.startswith("run-loop")]
    assert len(converted) == 10
    assert len(threads) - len(converted) <= 1  # the agent's own tool, which is small
