"""The variants of an agent in the editor: their inputs give stored values back, and compose new ones."""

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcms.wire.canonical import canonical
from agents_app.configuration.variants import JOINS, RULE_OPERATORS
from agents_app.forms.pickers import OptionSource
from agents_app.forms.variants.inputs import VariantInputs
from agents_app.models import Agent
from tests.agents_app.forms.test_round_trips import PHASES, keys, objects, texts, values
from tests.conftest import DRILL
from tests.factories import AgentFactory
from tests.form_submission import form_data
from tests.page_client import agent, editor, editor_form, publisher

__all__ = ["agent", "editor", "publisher"]

pytestmark = pytest.mark.django_db

DEMO = {"provider": "demo", "name": "storyteller", "delay": 0}


def rules(*conditions, join="AND"):
    names = ("field", "operator", "value")
    return {"operator": join, "conditions": [dict(zip(names, item, strict=False)) for item in conditions]}


ENTERPRISE = rules(("tier", "equals", "enterprise"))
STORED = {
    "model": [
        {
            "value": DEMO,
            "rules": rules(("tier", "in", ["pro", "enterprise"]), ("seats", "greater_than", 5), join="OR"),
        },
        {"value": {"provider": "demo", "name": "echo"}, "rules": ENTERPRISE, "note": "stays"},
    ],
    "memory": [
        {"value": "last-messages", "rules": rules(("roles", "contains", "viewer"), ("userId", "exists"))},
        {"value": {"options": {"lastMessages": 3}}, "rules": rules(("code", "equals", "7"))},
    ],
    "tools": [
        {"value": ["multiply", "add", "gone"], "rules": {"operator": "AND", "conditions": [ENTERPRISE]}},
        {"value": [], "rules": rules(("names", "in", ["a, b", 'say "x"']))},
    ],
}


def inputs(agent_row, value, keys=None):
    return VariantInputs.stored(value, keys, OptionSource("tools", None, agent_row))


def sent(variants, scripts=True):
    """Return the form that a browser sends for these inputs, without changes."""
    return form_data(render_to_string("agents/_variants.html", {"variants": variants, "url": "/"}), scripts)


@pytest.mark.parametrize("value", [None, {}, {"model": []}, STORED, {"tools": STORED["tools"], "model": None}])
def test_unchanged_inputs_give_the_stored_variants_back(agent, value):
    keys = ["locale", "plan name"]
    data = sent(inputs(agent, value, keys))

    submitted = VariantInputs.submitted(data, OptionSource("tools", None, agent))

    assert submitted.compose(value, keys) == (value, keys)
    assert submitted.errors == []


conditions = st.builds(
    lambda field, operator, value: {
        "field": field,
        "operator": operator,
        **({} if operator.endswith("exists") else {"value": [value] if operator.endswith("in") else value}),
    },
    keys,
    st.sampled_from(RULE_OPERATORS),
    values,
)


def groups(inner):
    """Return groups of these conditions."""
    return st.fixed_dictionaries(
        {"operator": st.sampled_from(JOINS), "conditions": st.lists(inner, min_size=1, max_size=3)}
    )


nested = groups(conditions | groups(conditions | groups(conditions)))
models = st.builds(
    lambda more, provider, name: {**more, "provider": provider, "name": name},
    objects("temperature", "topP", "maxTokens", "seed"),
    keys,
    keys,
)
recalls = st.none() | st.booleans() | objects("topK", "messageRange")
memories = keys | st.fixed_dictionaries(
    {
        "options": st.fixed_dictionaries(
            {},
            optional={"lastMessages": st.integers(1, 99) | st.just(False), "semanticRecall": recalls, "more": values},
        )
    },
    optional={"embedder": texts},
)
tools = st.lists(st.sampled_from(["word-count", "calculator", "gone", "a b"]), max_size=3, unique=True)
conditionals = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(st.fixed_dictionaries({"value": value, "rules": nested}), min_size=1, max_size=2)
        for name, value in (("model", models), ("memory", memories), ("tools", tools))
    },
)


@settings(
    max_examples=300 if DRILL else 15,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(value=conditionals, scripts=st.booleans())
def test_any_variants_come_back_from_their_inputs(agent, value, scripts):
    data = sent(inputs(agent, value), scripts)

    submitted = VariantInputs.submitted(data, OptionSource("tools", None, agent))

    composed, _ = submitted.compose(value, None)
    assert submitted.errors == []
    assert canonical(composed) == canonical(value)


def test_groups_of_conditions_are_inputs(agent):
    inner = rules(("seats", "greater_than", 5), ("beta", "exists"), join="OR")
    deep = {"operator": "OR", "conditions": [rules(("a", "equals", 1)), *inner["conditions"]]}
    several = {"operator": "AND", "conditions": [inner, *ENTERPRISE["conditions"], deep]}
    stored = {"tools": [{"value": ["add"], "rules": several}]}

    (row,) = inputs(agent, stored).rows

    assert row.rules == ""
    data = sent(inputs(agent, stored))
    prefix = "variant-tools-0"
    assert data.getlist(f"{prefix}-operator")[:3] == ["group:g0", "equals", "group:g2"]
    assert data.getlist(f"{prefix}-g2-g0-field")[0] == "a"
    assert not [name for name in data if name.endswith(("-rules", "-json"))]
    data[f"{prefix}-new0-join"] = "OR"
    data.setlist(f"{prefix}-new0-field", ["locale", ""])
    data.setlist(f"{prefix}-new0-expected", ["de", ""])
    value, _ = VariantInputs.submitted(data, OptionSource("tools", None, agent)).compose(stored, None)
    assert value["tools"][0]["rules"]["conditions"] == [
        *several["conditions"],
        rules(("locale", "equals", "de"), join="OR"),
    ]


def test_groups_that_name_themselves_are_read_once(agent):
    data = QueryDict(mutable=True)
    data["variant-tools"] = "n1"
    for prefix in ("variant-tools-n1", "variant-tools-n1-x", "variant-tools-n1-x-x", "variant-tools-n1-x-x-x"):
        data.setlist(f"{prefix}-field", ["", "", "a"])
        data.setlist(f"{prefix}-operator", ["group:x", "group:x", "exists"])
        data.setlist(f"{prefix}-expected", ["", "", ""])

    value, _ = VariantInputs.submitted(data, OptionSource("tools", None, agent)).compose(None, None)

    known = rules(("a", "exists"))["conditions"]
    third = {"operator": "AND", "conditions": known}
    second = {"operator": "AND", "conditions": [third, *known]}
    assert value["tools"][0]["rules"] == {"operator": "AND", "conditions": [second, *known]}


def test_the_name_of_a_new_variant_is_free_however_many_there_are(agent):
    data = QueryDict(mutable=True)
    data.setlist("variant-memory", [f"n{number}" for number in range(1, 1001)])
    data.update({f"variant-memory-n{number}-key": "last-messages" for number in range(1, 1001)})

    groups = VariantInputs.submitted(data, OptionSource("tools", None, agent)).groups

    assert {group.blank.row for group in groups} == {"n1001"}


def test_options_of_a_memory_are_fields_of_its_variant(publisher, agent):
    new = {
        "variant-memory": ["n1"],
        "variant-memory-n1-kind": "options",
        "variant-memory-n1-options.lastMessages": "few",
        "variant-memory-n1-field": ["tier"],
        "variant-memory-n1-operator": ["equals"],
        "variant-memory-n1-expected": ["pro"],
    }

    refused = save(publisher, agent, **new)
    saved = save(publisher, agent, **new | {"variant-memory-n1-options.lastMessages": "20"})

    assert refused.status_code == 422
    assert 'name="variant-memory-n1-options.lastMessages" value="few"' in refused.content.decode()
    assert saved.status_code == 302
    stored = Agent.objects.get(pk=agent.pk)
    assert stored.conditional["memory"][0]["value"] == {"options": {"lastMessages": 20}}


def test_other_settings_of_a_model_are_rows(publisher, agent):
    new = {
        "variant-model": ["n1"],
        "variant-model-n1-provider": "demo",
        "variant-model-n1-name": "echo",
        "variant-model-n1-maxTokens": "9",
        "variant-model-n1-rest-row-name": ["seed", "maxTokens"],
        "variant-model-n1-rest-row-kind": ["number", "number"],
        "variant-model-n1-rest-row-value": ["7", "8"],
        "variant-model-n1-field": ["beta"],
        "variant-model-n1-operator": ["exists"],
        "variant-model-n1-expected": [""],
    }

    refused = save(publisher, agent, **new)
    saved = save(publisher, agent, **new | {"variant-model-n1-maxTokens": ""})

    assert "“maxTokens” is set twice. Remove one of them." in refused.content.decode()
    assert saved.status_code == 302
    value = Agent.objects.get(pk=agent.pk).conditional["model"][0]["value"]
    assert value == {"provider": "demo", "name": "echo", "seed": 7, "maxTokens": 8}


@pytest.mark.parametrize("operator", RULE_OPERATORS)
def test_every_operator_is_a_choice(agent, operator):
    value = ["a", 2, True] if operator.endswith("in") else "x"
    condition = ("a", operator) if operator.endswith("exists") else ("a", operator, value)
    stored = {"tools": [{"value": ["add"], "rules": rules(condition)}]}

    (row,) = inputs(agent, stored).rows

    assert (row.rules, len(row.conditions.items)) == ("", 1)
    assert operator in dict(row.conditions.operators)


def save(client, row, **changed):
    sent_form = editor_form(row, conditional="shown", context_keys="", message="Variants", publish="yes", **changed)
    return client.post(reverse("agents:edit", args=[row.pk]), sent_form)


def test_an_editor_adds_a_variant_without_json(publisher, agent):
    new = {
        "variant-model": ["n1"],
        "variant-model-n1-provider": "demo",
        "variant-model-n1-name": "storyteller",
        "variant-model-n1-join": "OR",
        "variant-model-n1-field": ["tier", "seats", ""],
        "variant-model-n1-operator": ["in", "greater_than_or_equal", "equals"],
        "variant-model-n1-expected": ["pro, enterprise", "5", ""],
    }

    assert save(publisher, agent, **new).status_code == 302

    stored = Agent.objects.get(pk=agent.pk)
    conditions = [("tier", "in", ["pro", "enterprise"]), ("seats", "greater_than_or_equal", 5)]
    value = {"provider": "demo", "name": "storyteller"}
    assert stored.conditional == {"model": [{"value": value, "rules": rules(*conditions, join="OR")}]}
    page = publisher.get(reverse("agents:edit", args=[agent.pk])).content.decode()
    assert 'name="variant-model-0-provider" value="demo"' in page
    assert "pro, enterprise" in page


def test_usual_settings_of_a_model_are_fields(publisher, agent):
    value = {"provider": "demo", "name": "echo", "seed": 7, "maxTokens": 2000, "temperature": 0, "topP": None}
    stored = {"model": [{"value": value, "rules": ENTERPRISE}]}

    (row,) = inputs(agent, stored).rows

    assert [text for _, _, text, _ in row.setting_inputs] == ["0", "", "2000"]
    assert (row.json, row.rest.compose()) == ("", {"seed": 7, "topP": None})
    submitted = VariantInputs.submitted(sent(inputs(agent, stored)), OptionSource("tools", None, agent))
    assert submitted.compose(stored, None) == (stored, None)

    new = {"variant-model": ["n1"], "variant-model-n1-provider": "demo", "variant-model-n1-name": "echo"}
    new |= {
        "variant-model-n1-field": ["a"],
        "variant-model-n1-operator": ["exists"],
        "variant-model-n1-expected": [""],
    }
    refused = save(publisher, agent, **new, **{"variant-model-n1-temperature": "warm"})
    assert "Model, variant 1: Temperature must be a number, such as 0.7." in refused.content.decode()
    assert save(publisher, agent, **new, **{"variant-model-n1-temperature": "0.20"}).status_code == 302
    assert Agent.objects.get(pk=agent.pk).conditional["model"][0]["value"]["temperature"] == 0.2


def test_what_is_missing_stands_at_the_variant_and_nothing_is_stored(publisher, agent):
    new = {"variant-tools": ["n1"], "variant-tools-n1-keys": ["add"], "variant-memory": ["n2"]}
    new |= {
        "variant-memory-n2-field": ["tier"],
        "variant-memory-n2-operator": ["equals"],
        "variant-memory-n2-expected": ["x"],
    }

    answer = save(publisher, agent, **new)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Tools, variant 1: Add a condition" in page
    assert "Memory, variant 1: Choose a memory." in page
    assert Agent.objects.get(pk=agent.pk).conditional is None


def test_variants_are_removed_and_context_keys_are_named(publisher):
    row = AgentFactory(conditional={"tools": [{"value": ["add"], "rules": ENTERPRISE}]}, context_keys=["locale"])

    assert save(publisher, row, **{"variant-tools": ["n1"]}).status_code == 302

    stored = Agent.objects.get(pk=row.pk)
    assert (stored.conditional, stored.context_keys) == (None, None)


def test_tools_of_a_variant_that_are_no_keys_are_an_error(publisher):
    row = AgentFactory(conditional={"tools": [{"value": ["add"], "rules": ENTERPRISE}]})
    changed = {"variant-tools": ["0"], "variant-tools-0-json": '["add", 1, {"a": 2}]'}

    answer = save(publisher, row, **changed, **{"variant-tools-0-rules": canonical(ENTERPRISE)})

    assert answer.status_code == 422
    assert "This must be a text" in answer.content.decode()
