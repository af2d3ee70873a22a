"""Variables in instructions, filled from the request context of a call."""

import base64
import json

import pytest
from pydantic_ai.models.function import FunctionModel

from agents_app.registry import Entry, Kind, registry
from runs_app.models import AgentRun
from runs_app.resolution import ResolvedAgent
from tests.api_client import Caller
from tests.factories import AgentFactory, api_key, member
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")

GENERATE = "/api/agents/concierge/generate"


@pytest.fixture
def user():
    return member("editor")


@pytest.fixture
def editor(user):
    return Caller(api_key(user))


@pytest.fixture
def received():
    """Register a model that records the instructions of each request."""
    texts = []

    async def answer(messages, info):
        texts.append(info.instructions)
        yield "Understood."

    entry = Entry(
        Kind.MODEL_PROVIDER, "recorder", "Recorder", target=lambda name, choice: FunctionModel(stream_function=answer)
    )
    registry.add(entry)
    return texts


def recorded(instructions, **fields):
    model = {"provider": "recorder", "name": "any"}
    return AgentFactory(id="concierge", instructions=instructions, model=model, **fields)


def generate(editor, path=GENERATE, **body):
    return editor.post(path, {"messages": "Hello", **body})


def test_values_of_the_call_fill_the_instructions(editor, received):
    recorded("You help {{ user.name }} of {{company}}, {{tone || 'calmly'}}. {{items.1}} {{count}} {{user}}")

    context = {"user": {"name": "Ann"}, "company": "Örtel", "items": ["a", "b"], "count": 3}
    answer = generate(editor, requestContext=context)

    assert (answer.status_code, answer.body["warnings"]) == (200, [])
    assert received == ['You help Ann of Örtel, calmly. b 3 {"name": "Ann"}']


def test_variables_are_a_shorthand_and_stronger(editor, received):
    recorded("{{a}} {{b}} {{c.d}}")

    generate(editor, requestContext={"a": "1", "b": "1", "c": {"d": "1"}}, variables={"b": "2", "c.d": "3"})

    assert received == ["1 2 3"]


def test_values_are_inserted_as_text(editor, received):
    recorded("{{a}} {{b}}")

    generate(editor, variables={"a": "{{b}} \\1 $& <b> %s {0}", "b": "secret"})

    assert received == ["{{b}} \\1 $& <b> %s {0} secret"]


@pytest.mark.parametrize(
    "text",
    [
        "Hello {{name}}, use {{#each}} and {{{raw}}} or {{ a | b }}.",
        "  {{name}}\n\n",
        "{{name}}",
        "Write `{{` and `}}` around {{ x.y }}.",
        "No variables, { { here } }.",
    ],
)
def test_without_values_and_declarations_the_model_is_sent_the_same_text(editor, received, text):
    recorded(text)

    assert generate(editor).status_code == 200
    assert received == [text.strip()]  # as for a text without braces
    run = AgentRun.objects.get()
    assert run.input.keys() == {"messages", "options"}
    assert run.filled_instructions == text


def test_a_variable_without_value_and_default_stays_and_is_warned_of(editor, received):
    recorded("Hello {{name}}, {{name}}, {{ other.name }}. {{known}}")

    answer = generate(editor, variables={"known": "yes", "name": None})

    messages = [warning["message"] for warning in answer.body["warnings"]]
    assert received == ["Hello {{name}}, {{name}}, {{ other.name }}. yes"]
    assert messages == [
        "The variable name has no value and no default, so {{name}} stays in the instructions.",
        "The variable other.name has no value and no default, so {{other.name}} stays in the instructions.",
    ]
    run = AgentRun.objects.get()
    assert [warning["key"] for warning in run.warnings] == ["name", "other.name"]
    assert editor.get(f"/api/runs/{run.pk}").body["warnings"] == run.warnings


def test_a_run_keeps_its_values_and_what_the_model_received(editor, received):
    recorded("Hello {{name}}.")
    generate(editor, requestContext={"name": "Ann", "unused": [1]})

    run = AgentRun.objects.get()
    body = editor.get(f"/api/runs/{run.pk}").body

    assert body["instructions"] == received[0] == "Hello Ann."
    assert body["requestContext"] == {"name": "Ann", "unused": [1]}
    assert body["configuration"]["instructions"] == "Hello {{name}}."


def test_reserved_keys_are_dropped_with_a_warning(editor, received):
    recorded("{{mastra__resourceId}} {{organizationId}} {{name}}")

    answer = generate(
        editor,
        requestContext={"mastra__resourceId": "x", "organizationId": "y"},
        variables={"mastra__threadId": "z", "name": "Ann"},
    )

    assert received == ["{{mastra__resourceId}} {{organizationId}} Ann"]
    assert [warning["field"] for warning in answer.body["warnings"][:3]] == [
        "requestContext.mastra__resourceId",
        "requestContext.organizationId",
        "requestContext.mastra__threadId",
    ]
    assert AgentRun.objects.get().request_context == {"name": "Ann"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"requestContext": "name"}, "requestContext"),
        ({"requestContext": [1]}, "requestContext"),
        ({"variables": 1}, "variables"),
        ({"variables": {"name": "\0"}}, "variables.name"),
        ({"requestContext": {"name": "x" * 70_000}}, "requestContext"),
        ({"variables": {"name": "x" * 70_000}}, "variables"),
    ],
)
def test_invalid_values_are_refused_with_the_name_of_the_field(editor, received, body, field):
    recorded("Hello {{name}}.")

    answer = generate(editor, **body)

    assert (answer.status_code, [issue["field"] for issue in answer.body["issues"]]) == (400, [field])
    assert not AgentRun.objects.exists()


def test_instructions_that_the_values_make_too_long_are_refused(editor, received):
    recorded("{{name}} " * 100)

    answer = generate(editor, variables={"name": "x" * 20_000})

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "requestContext")
    assert "Send shorter values." in answer.body["issues"][0]["message"]
    assert not AgentRun.objects.exists()


# --- Declared variables


SCHEMA = {
    "properties": {"name": {}, "tone": {"default": "calm"}, "age": {"type": "integer"}},
    "required": ["name", "tone", "age"],
}


def test_a_missing_required_variable_is_named(editor, received):
    recorded("Hello.", request_context_schema=SCHEMA)

    answer = generate(editor, variables={"age": "x"})

    assert answer.status_code == 400
    assert answer.body["issues"] == [
        {"field": "requestContext.age", "message": "This must be of the type integer."},
        {
            "field": "requestContext.name",
            "message": "The agent needs this variable. Send it in requestContext or in variables.",
        },
    ]
    assert not AgentRun.objects.exists()


def test_declared_defaults_are_used_last(editor, received):
    recorded("{{name}} {{tone}} {{tone || 'loud'}} {{age}}", request_context_schema=SCHEMA)

    generate(editor, variables={"name": "Ann", "age": 3})
    generate(editor, variables={"name": "Ann", "age": 3, "tone": "shrill"})

    assert received == ["Ann calm loud 3", "Ann shrill shrill 3"]


def test_a_version_is_run_with_its_own_declarations(editor, received):
    agent = recorded("{{tone}}", request_context_schema=SCHEMA)
    agent.edit({"request_context_schema": {"properties": {"tone": {"default": "new"}}}})

    live, first = generate(editor), generate(editor, f"{GENERATE}?versionNumber=1")

    assert (live.status_code, first.status_code, received) == (200, 400, ["new"])


def test_the_agents_of_the_client_have_the_declarations_as_text(editor, received):
    recorded("Hello.", request_context_schema=SCHEMA)

    body = editor.get("/api/agents/concierge").body

    assert json.loads(body["requestContextSchema"]) == {"json": SCHEMA}


# --- Other ways in and other runs


def encoded(value):
    return base64.b64encode(json.dumps(value).encode()).decode()


def test_the_query_of_the_client_fills_variables_too(editor, received):
    recorded("{{a}} {{b}}")

    generate(editor, f"{GENERATE}?requestContext={encoded({'a': '1', 'b': '1'})}", requestContext={"b": "2"})

    assert received == ["1 2"]


@pytest.mark.parametrize("value", ["e", "%ff%00", "", encoded([1]), encoded("x"), "e30=e30="])
def test_a_malformed_query_is_ignored(editor, received, value):
    recorded("{{a || 'none'}}")

    answer = generate(editor, f"{GENERATE}?requestContext={value}")

    assert (answer.status_code, received) == (200, ["none"])
    assert [warning["field"] for warning in answer.body["warnings"]] == (["requestContext"] if value else [])


def test_a_large_query_is_refused(editor, received):
    recorded("{{a}}")

    answer = generate(editor, f"{GENERATE}?requestContext={encoded({'a': 'x' * 9000})}")

    assert (answer.status_code, answer.body["issues"][0]["field"]) == (400, "requestContext")


def test_a_stream_fills_variables_and_warns(editor, received):
    recorded("{{a}} {{b}}")

    body = json.dumps({"messages": "Hello", "variables": {"a": "1"}})
    answer = editor.client.post("/api/agents/concierge/stream", body, content_type="application/json")
    start = json.loads(b"".join(answer.streaming_content).decode().partition("data: ")[2].partition("\n")[0])

    assert received == ["1 {{b}}"]
    assert [warning["key"] for warning in start["payload"]["warnings"]] == ["b"]


def test_the_same_key_with_other_values_is_another_request(editor, received):
    recorded("{{a}}")

    answers = [
        editor.post(GENERATE, {"messages": "Hello", "variables": {"a": value}}, Idempotency_Key="k")
        for value in ("1", "1", "2")
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 422]
    assert received == ["1"]


def test_strict_requests_refuse_what_is_dropped(editor, received):
    recorded("{{a}}")

    dropped = generate(editor, f"{GENERATE}?strict=true", variables={"organizationId": "x"})
    used = generate(editor, f"{GENERATE}?strict=true", variables={"a": "x"}, requestContext={})

    assert (dropped.status_code, used.status_code) == (400, 200)


def test_sub_agents_get_the_same_values(user, received):
    recorded("Hello {{name}}.")
    main = AgentFactory(model=DEMO, agents=["concierge"])

    run = wait_for_end(start_run(main, user, "Use agent-concierge for this", request_context={"name": "Ann"}))

    assert received == ["Hello Ann."]
    assert run.children.get().request_context == {"name": "Ann"}


def test_a_sub_agent_without_its_required_variable_is_an_error_for_the_model(user, received):
    recorded("Hello.", request_context_schema={"required": ["name"]})
    main = AgentFactory(model=DEMO, agents=["concierge"])

    run = wait_for_end(start_run(main, user, "Use agent-concierge for this"))

    assert (run.status, received, run.children.count()) == ("succeeded", [], 0)
    result = run.events.get(type="tool-result").data["payload"]
    assert "requestContext.name: The agent needs this variable." in str(result["result"])


def test_agents_with_variables_are_built_once(user, received, monkeypatch):
    agent, builds, build = recorded("Hello {{name}}."), [], ResolvedAgent._build
    monkeypatch.setattr(ResolvedAgent, "_build", lambda *args: builds.append(args) or build(*args))

    for name in ("Ann", "Ben"):
        wait_for_end(start_run(agent, user, request_context={"name": name}))

    assert received == ["Hello Ann.", "Hello Ben."]
    assert len(builds) == 1
