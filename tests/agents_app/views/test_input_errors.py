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
    (error_id,) = re.findall(r'aria-describedby="([^"]+)"', tag)
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
