"""Errors of a field with several inputs, on a page without JavaScript: at the input of the error."""

import re

import pytest
from django.urls import reverse

from tests.factories import AgentFactory
from tests.form_submission import form_data

pytestmark = pytest.mark.django_db


def post(client, agent, changes):
    url = reverse("agents:edit", args=[agent.pk])
    data = form_data(client.get(url).content.decode())
    for name, values in changes.items():
        data.setlist(name, values)
    return client.post(url, dict(data.lists())).content.decode()


def error_of(html, opening):
    """Return the text of the error that describes the only invalid input whose tag begins like this."""
    (tag,) = (tag for tag in re.findall(rf"<(?:input|textarea)[^>]*{opening}[^>]*>", html) if "aria-invalid" in tag)
    (error_id,) = re.findall(r'aria-describedby="([^" ]+)', tag)
    (text,) = re.findall(rf'id="{re.escape(error_id)}"[^>]*>(.*?)</p>', html, re.DOTALL)
    return re.sub("<[^>]+>", "", text).removeprefix("Error:").strip()


def visible_items(html, field):
    """Return the errors that stand in the list of a field."""
    (items,) = re.findall(rf'id="id_{field}_error".*?</div>', html, re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", items)


def rows(prefix, *members, columns=("name", "kind", "value")):
    return {f"{prefix}-row-{column}": [member[index] for member in members] for index, column in enumerate(columns)}


def test_the_error_of_a_new_row_stands_at_its_value(editor):
    agent = AgentFactory(metadata={"team": "night"})

    sent = rows("metadata", ("team", "text", "night"), ("", "text", ""), ("floor", "number", "third"))
    html = post(editor, agent, sent)

    assert error_of(html, 'name="metadata-row-value"') == "This must be a number, such as 0.7."
    assert html.index('value="floor"') < html.index('aria-describedby="metadata-value-1_error"')
    assert visible_items(html, "metadata") == []


def test_a_second_row_of_the_same_name_has_the_error_at_its_name(editor):
    html = post(editor, AgentFactory(), rows("metadata", ("team", "text", "night"), ("team", "text", "day")))

    assert error_of(html, 'name="metadata-row-name"') == "“team” is set twice. Remove one of them."
    assert 'id="metadata-name-1_error"' in html


def test_the_error_of_a_member_stands_at_its_input(editor):
    html = post(editor, AgentFactory(), {"default_options-maxSteps": ["many"]})

    assert error_of(html, 'name="default_options-maxSteps"') == "This must be a number, such as 0.7."
    assert visible_items(html, "default_options") == []


def test_the_error_of_an_argument_stands_at_the_processor(editor):
    agent = AgentFactory(input_processors=[{"key": "trim-whitespace", "limit": 1.5}])
    html = post(editor, agent, {"input_processors-0-row-value": ["long"]})

    assert error_of(html, 'name="input_processors-0-row-value"') == "This must be a number, such as 0.7."
    assert visible_items(html, "input_processors") == []


def test_the_error_of_a_variable_stands_at_its_default(editor):
    columns = ("name", "type", "default", "required", "description")
    sent = rows("request_context_schema", ("age", "integer", "x", "no", ""), columns=columns)
    html = post(editor, AgentFactory(), sent)

    assert "JSON" in error_of(html, 'name="request_context_schema-row-default"')
    assert visible_items(html, "request_context_schema") == []


def test_the_error_of_a_background_task_stands_at_the_text(publisher):
    agent = AgentFactory(tools=["calculator"])
    sent = {"background-use-calculator": ["deferred"], "background-retries-calculator": ["many"]}
    html = post(publisher, agent, sent)

    message = "The retries of calculator are not a whole number. Use a number such as 2, or leave the input blank."
    assert error_of(html, 'name="background-retries-calculator"') == message
    assert 'value="many"' in html


def test_the_error_of_a_setting_of_a_variant_stands_at_its_value(editor):
    prefix = "variant-model-n1"
    sent = {
        f"{prefix}-provider": ["demo"],
        f"{prefix}-name": ["echo"],
        f"{prefix}-field": ["userId"],
        f"{prefix}-operator": ["equals"],
        f"{prefix}-expected": ["ada"],
        **rows(f"{prefix}-rest", ("seed", "number", "x")),
    }
    html = post(editor, AgentFactory(), sent)

    assert error_of(html, f'name="{prefix}-rest-row-value"') == "This must be a number, such as 0.7."


def variant(row, **texts):
    """Return the inputs of a model variant with a condition."""
    prefix = f"variant-model-{row}"
    texts = {"provider": "demo", "name": "echo", "field": "userId", "operator": "equals", "expected": "ada"} | texts
    return {f"{prefix}-{part}": [text] for part, text in texts.items()}


@pytest.mark.parametrize(
    ("changed", "part", "message"),
    [
        ({"temperature": "hot"}, "temperature", "Temperature must be a number, such as 0.7."),
        ({"name": ""}, "name", "Enter the provider and the model."),
        ({"provider": "", "name": ""}, "provider", "Enter the provider and the model."),
    ],
)
def test_the_error_of_a_variant_stands_at_its_input(editor, changed, part, message):
    html = post(editor, AgentFactory(), variant("n1", **changed))

    assert error_of(html, f'name="variant-model-n1-{part}"') == message
    assert visible_items(html, "variant_inputs") == []


def test_a_variant_without_a_condition_has_the_error_at_the_first_fact(editor):
    html = post(editor, AgentFactory(), variant("n1", field=""))

    message = "Add a condition, so that the variant holds for some callers."
    assert error_of(html, 'name="variant-model-n1-field"') == message


def test_each_wrong_number_of_a_variant_has_its_error(editor):
    html = post(editor, AgentFactory(), variant("n1", temperature="hot", topP="wide"))

    assert "Temperature must be a number" in error_of(html, 'name="variant-model-n1-temperature"')
    assert "Top P must be a number" in error_of(html, 'name="variant-model-n1-topP"')


def test_an_option_of_the_memory_of_a_variant_has_its_error(editor):
    prefix = "variant-memory-n1"
    sent = {f"{prefix}-kind": ["options"], f"{prefix}-options.lastMessages": ["-1"], f"{prefix}-field": ["userId"]}
    sent |= {f"{prefix}-operator": ["exists"], f"{prefix}-expected": [""]}
    html = post(editor, AgentFactory(), sent)

    message = "This must be a whole number from 0 to 1,000, or false for no messages."
    assert error_of(html, f'name="{prefix}-options.lastMessages"') == message


def test_an_option_of_the_memory_has_its_error_at_its_input_alone(editor):
    html = post(editor, AgentFactory(), {"memory_kind": ["options"], "memory-options.lastMessages": ["-1"]})

    message = "This must be a whole number from 0 to 1,000, or false for no messages."
    assert message in html
    assert f"Last messages: {message}" in html
    assert visible_items(html, "memory_options") == []


def test_a_registered_memory_must_be_chosen(editor):
    html = post(editor, AgentFactory(memory="last-messages"), {"memory_kind": ["registered"], "memory": [""]})

    assert visible_items(html, "memory") == ["Choose a registered memory."]


def test_a_limit_of_a_background_task_is_told_at_its_input(publisher):
    agent = AgentFactory(tools=["calculator"])
    sent = {"background-use-calculator": ["deferred"], "background-retries-calculator": ["101"]}
    html = post(publisher, agent, sent)

    assert "100" in error_of(html, 'name="background-retries-calculator"')
    assert visible_items(html, "background_inputs") == []


@pytest.mark.parametrize(
    ("kind", "amount", "message"),
    [
        ("ratio", "1.7", "This must be less than or equal to 1."),
        ("count", "every", "Enter a number."),
        ("ratio", "", "Enter a number."),
    ],
)
def test_the_error_of_a_sampling_stands_at_its_amount(editor, kind, amount, message):
    sent = {
        "scorers": ["answer-length"],
        "scorers-answer-length-type": [kind],
        "scorers-answer-length-amount": [amount],
    }

    html = post(editor, AgentFactory(), sent)

    assert error_of(html, 'name="scorers-answer-length-amount"') == message
    assert f"Sampling of answer-length: {message}" in html
    assert visible_items(html, "scorers") == []
    assert 'id="id_scorers"' in html  # the link of the error leads here


@pytest.mark.parametrize(
    ("field", "sent"),
    [
        (
            "scorers",
            {
                "scorers": ["answer-length"],
                "scorers-answer-length-type": ["ratio"],
                "scorers-answer-length-amount": ["5"],
            },
        ),
        ("tools", {"tools": ["k" * 300]}),
    ],
)
def test_a_response_of_htmx_puts_the_error_of_a_picker_at_its_field(editor, field, sent):
    agent = AgentFactory()
    data = form_data(editor.get(reverse("agents:edit", args=[agent.pk])).content.decode())
    for name, values in sent.items():
        data.setlist(name, values)

    answer = editor.post(
        reverse("versions:review", args=[agent.pk]), dict(data.lists()), headers={"HX-Request": "true"}
    )

    (place,) = re.findall(rf'<div[^>]*id="id_{field}_error"[^>]*>', answer.content.decode())
    assert 'hx-swap-oob="true"' in place
    assert " hidden" not in place
