"""Any configuration that the schema allows comes back unchanged from the fields of the editor."""

import re
import unicodedata

import pytest
from django.template.loader import render_to_string
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from agentcms.wire.canonical import canonical
from agents_app.configuration import schema
from agents_app.configuration.fields.types import INVISIBLE_CATEGORIES
from agents_app.forms.existing_agent import ExistingAgentForm
from tests.conftest import DRILL
from tests.factories import AgentFactory, UserFactory
from tests.form_submission import form_data

pytestmark = pytest.mark.django_db

# Shrinking a configuration takes minutes.
PHASES = list(Phase) if DRILL else [Phase.explicit, Phase.reuse, Phase.generate]

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8) | st.sampled_from(
    [
        "",
        " ",
        "a\nb",
        "\n",
        "a\r\nb",
        "\r",
        "true",
        "1",
        "null",
        "a, b",
        "<b>&amp;\"'</textarea>",
        "__row__",
        "x:y",
        "é🙂",
    ]
)
keys = texts.filter(lambda text: {*map(unicodedata.category, text)} - INVISIBLE_CATEGORIES)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.just(10**25)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=5
)


def objects(*names):
    """Return objects with some of these members, of any value, and with others."""
    return st.dictionaries(st.sampled_from(names) | texts, values, max_size=4)


rest = st.dictionaries(texts, values, max_size=2)
samplings = st.none() | st.builds(
    lambda more, chosen: {**more, **chosen},
    rest,
    st.builds(lambda rate: {"type": "ratio", "rate": rate}, st.floats(0, 1) | st.sampled_from([0, 1]))
    | st.builds(lambda count: {"type": "count", "count": count}, st.integers(1, 2**40)),
)
scorers = st.builds(
    lambda more, sampling: {**more, **sampling}, rest, st.just({}) | st.builds(lambda s: {"sampling": s}, samplings)
)
processors = objects("key", "id", "limit") | st.builds(
    lambda more, key: {**more, "key": key}, rest, st.sampled_from(["mask-email", "trim-whitespace", "gone"]) | keys
)
key_lists = st.lists(st.sampled_from(["word-count", "calculator", "text_case_upper"]) | keys, max_size=3, unique=True)
MODEL_NAMES = ("temperature", "topP", "maxTokens", "topK", "seed", "thinking", "stopSequences", "provider-x")
OPTION_NAMES = ("maxSteps", "toolChoice", "temperature", "activeTools", "modelSettings")

variable_names = st.sampled_from(["tone", "user", "a b"]) | keys
variable_schemas = st.fixed_dictionaries(
    {},
    optional={"description": texts, "type": st.sampled_from(["string", "number", ["string", "null"]]), "why": values},
) | st.builds(lambda text: {"default": text}, texts)
schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(variable_names, variable_schemas, max_size=3),
        "required": st.lists(variable_names, max_size=2),
    },
)


def choices(*names, **members):
    """Return null, or an object with some of these names, each with some of the members and with others."""
    members = {**members, "why": values}
    return st.none() | st.dictionaries(st.sampled_from(names), st.fixed_dictionaries({}, optional=members), max_size=2)


mcp_tools = choices(
    "add", "*", "b_c", description=st.none() | texts, requireApproval=st.none() | st.booleans(), hash=st.none()
)
filters = st.none() | st.dictionaries(
    st.sampled_from(["audience", "year"]),
    scalars | st.dictionaries(st.sampled_from(["$eq", "$ne"]), scalars, min_size=1),
)
background_choices = choices(
    "calculator",
    "gone",
    enabled=st.none() | st.booleans(),
    timeoutMs=st.none() | st.integers(1, 24 * 3600 * 1000),
    maxRetries=st.none() | st.integers(0, 100),
    disposition=st.sampled_from([None, "foreground", "deferred", "awaited"]),
    ordered=st.booleans(),
)
background_tasks = st.fixed_dictionaries(
    {},
    optional={
        "disabled": st.none() | st.booleans(),
        "tools": st.just("all") | st.just({"calculator": True, "gone": False}) | background_choices,
        "why": values,
    },
)
memories = st.sampled_from(
    [
        {"options": {}},
        {"embedder": None},
        {"observationalMemory": {}},
        {"options": {"workingMemory": {}, "semanticRecall": {"enabled": False}}, "vector": "pinecone"},
        {"options": {"lastMessages": False, "messageHistory": True, "generateTitle": {"minMessages": 2}}},
    ]
)

configurations = st.fixed_dictionaries(
    {
        "name": keys,
        "instructions": texts,
        "model": st.builds(
            lambda more, provider, name: {**more, "provider": provider, "name": name},
            objects(*MODEL_NAMES),
            keys,
            keys,
        ),
    },
    optional={
        "description": texts,
        "tools": key_lists,
        "default_options": objects(*OPTION_NAMES),
        "workflows": key_lists,
        "agents": key_lists,
        "integration_tools": key_lists,
        "input_processors": st.lists(processors, max_size=3),
        "output_processors": st.lists(processors, max_size=2),
        "memory": st.none() | keys | memories,
        "knowledge": choices(
            "handbook",
            "prices",
            topK=st.none() | st.integers(1, 20),
            minScore=st.none() | st.floats(-1, 1),
            filter=filters,
        ),
        "mcp_clients": choices("office", "my_office", tools=mcp_tools),
        "background_tasks": st.none() | background_tasks,
        "context_keys": st.none() | key_lists,
        "request_context_schema": st.none() | schemas,
        "scorers": st.dictionaries(keys, scorers, max_size=3),
        "metadata": objects("tags"),
        "durable": st.none() | st.booleans() | st.builds(lambda steps: {"maxSteps": steps}, st.integers(1, 2**63 - 1)),
    },
)


@pytest.fixture
def agent():
    return AgentFactory()


@pytest.fixture
def user():
    return UserFactory(is_superuser=True)


def render(form):
    about = f"{form['name']}{form['description']}"
    return about + render_to_string("agents/_form.html", {"form": form})


@settings(
    max_examples=500 if DRILL else 30,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(fields=configurations, scripts=st.booleans())
@example(fields={"name": "a\nb", "instructions": "a\r\nb", "model": {"provider": "p\r", "name": " n"}}, scripts=True)
@example(
    fields={
        "name": "A",
        "instructions": "",
        "model": {"provider": "p", "name": "n", "topK": 1.5, "seed": "7", "stopSequences": []},
        "metadata": {"tags": ["a, b"], "": 1},
        "tools": ["a\nb", "word-count"],
        "input_processors": [{"id": "mask-email", "why": [1]}, {"key": "gone", "id": 3}],
        "request_context_schema": {"properties": {"tone": {"default": "warm"}}, "required": ["tone"]},
    },
    scripts=False,
)
@example(
    fields={
        "name": "A",
        "instructions": "",
        "model": {"provider": "p", "name": "n"},
        "knowledge": {},
        "mcp_clients": {},
        "background_tasks": {"disabled": False, "tools": {}},
        "context_keys": [" a", "b\nc "],
        "memory": {"embedder": None},
    },
    scripts=True,
)
def test_an_unchanged_form_changes_nothing(agent, user, fields, scripts):
    configuration = {**schema.defaults(), **fields}
    schema.validate_config(schema.to_wire_dict(configuration))

    opened = ExistingAgentForm(base=configuration, user=user, agent=agent)
    data = form_data(render(opened), scripts)
    sent = ExistingAgentForm(data, base=configuration, user=user, agent=agent)

    assert sent.is_valid(), sent.errors
    assert sent.changed_fields() == {}


@settings(
    max_examples=100 if DRILL else 10,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(fields=configurations, view=st.sampled_from(["json", "fields"]))
@example(
    fields={
        "name": "A",
        "instructions": "",
        "model": {"provider": "p", "name": "n"},
        "agents": ["a\nb", "a\r\nb"],
    },
    view="json",
)
def test_another_view_of_the_fields_changes_nothing(agent, user, fields, view):
    configuration = {**schema.defaults(), **fields}
    opened = ExistingAgentForm(base=configuration, user=user, agent=agent)

    data = form_data(render(opened))
    for name in ("metadata", "request_context_schema", "model_rest", "input_processors", "default_options"):
        switched = ExistingAgentForm(data, base=configuration, user=user, agent=agent)
        switched.show = f"{name}:{view}"
        data = form_data(render(switched))

    sent = ExistingAgentForm(data, base=configuration, user=user, agent=agent)
    assert sent.is_valid(), sent.errors
    assert canonical(sent.configuration()) == canonical(configuration)


def test_the_fields_of_an_agent_show_no_json(agent, user):
    configuration = {
        **schema.defaults(),
        "name": "A",
        "instructions": "",
        "model": {"provider": "p", "name": "n", "topK": 5, "openaiStore": True},
        "metadata": {"tags": ["a", "b"], "team": "support"},
        "input_processors": [{"key": "mask-email"}],
    }

    html = render(ExistingAgentForm(base=configuration, user=user, agent=agent))

    with_scripts = re.sub(r"<noscript>.*?</noscript>", "", html, flags=re.DOTALL)
    assert 'data-editor="json"' not in with_scripts
    data = form_data(html)
    assert data["metadata-tags"] == "a, b"
    assert data.getlist("metadata-row-name") == ["team"]
    assert data["model_rest-topK"] == "5"
    assert data.getlist("input_processors-item") == ["0:key:mask-email"]
