"""The variants of an agent in the editor: their inputs give stored values back, and compose new ones."""

import pytest
from django.http import QueryDict
from django.urls import reverse

from agents_app.configuration.conditional import RULE_OPERATORS
from agents_app.forms.pickers import OptionSource
from agents_app.forms.variants.inputs import VariantInputs
from agents_app.models import Agent
from tests.factories import AgentFactory
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


def sent(variants):
    """Return the form that a browser sends for these inputs, without changes."""
    data = QueryDict(mutable=True)
    data["conditional"], data["context_keys"] = "shown", variants.context_keys
    for row in [row for group in variants.groups for row in (*group.rows, group.blank)]:
        data.appendlist(f"variant-{row.field}", row.row)
        for part, text in {**row.texts, "json": row.json, "rules": row.rules, "join": row.join}.items():
            data[f"{row.prefix}-{part}"] = text.replace("\n", "\r\n")
        data.setlist(f"{row.prefix}-keys", [tool.key for tool in variants.tools if tool.key in row.keys])
        for column, name in enumerate(("field", "operator", "expected")):
            data.setlist(f"{row.prefix}-{name}", [item[column] for item in row.condition_inputs])
    return data


@pytest.mark.parametrize("value", [None, {}, {"model": []}, STORED, {"tools": STORED["tools"], "model": None}])
def test_unchanged_inputs_give_the_stored_variants_back(agent, value):
    keys = ["locale", "plan name"]
    data = sent(inputs(agent, value, keys))

    submitted = VariantInputs.submitted(data, OptionSource("tools", None, agent))

    assert submitted.compose(value, keys) == (value, keys)
    assert submitted.errors == []


@pytest.mark.parametrize("operator", RULE_OPERATORS)
def test_every_operator_is_a_choice(agent, operator):
    value = ["a", 2, True] if operator.endswith("in") else "x"
    condition = ("a", operator) if operator.endswith("exists") else ("a", operator, value)
    stored = {"tools": [{"value": ["add"], "rules": rules(condition)}]}

    (row,) = inputs(agent, stored).rows

    assert (row.rules, len(row.conditions)) == ("", 1)
    assert operator in dict(row.operators)


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

    assert [text for _, _, text in row.setting_inputs] == ["0", "", "2000"]
    assert (row.json, row.texts["rest"]) == ("", '{"seed": 7, "topP": null}')
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
