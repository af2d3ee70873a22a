"""The variables of an agent in the editor: those in the instructions, and declared ones."""

import pytest
from django.urls import reverse

from tests.factories import AgentFactory
from tests.form_submission import form_data
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db

SCHEMA = {"type": "object", "properties": {"tone": {"type": "string", "default": "warm"}}, "required": ["tone"]}


def save(client, agent, **changed):
    form = editor_form(agent, publish="no", **changed)
    if "request_context_schema" not in changed:
        del form["request_context_schema"]
    response = client.post(reverse("agents:edit", args=[agent.pk]), form)
    agent.refresh_from_db()
    return response


def rows(*variables):
    columns = ("name", "type", "description", "default", "required")
    return {
        f"request_context_schema-row-{column}": [variable[index] for variable in variables]
        for index, column in enumerate(columns)
    }


def test_variables_of_the_instructions_are_listed_with_their_defaults(editor):
    agent = AgentFactory(instructions="{{tone || 'warm'}} and {{user.name}}", request_context_schema=SCHEMA)

    form = editor.get(reverse("agents:edit", args=[agent.pk])).context["form"]

    assert [(variable.name, variable.default) for variable in form.variables] == [
        ("tone", "warm"),
        ("user.name", None),
    ]


def test_variables_are_declared_by_rows(editor, agent):
    save(editor, agent, **rows(("tone", "", "How to speak", "warm", "no"), ("age", "integer", "", "3", "yes")))

    assert agent.request_context_schema == {
        "properties": {
            "tone": {"description": "How to speak", "default": "warm"},
            "age": {"type": "integer", "default": 3},
        },
        "required": ["age"],
    }


def test_removing_all_rows_declares_nothing(editor):
    agent = AgentFactory(request_context_schema={"properties": {"tone": {}}})

    save(editor, agent)

    assert agent.request_context_schema is None


def test_a_schema_has_rows_only_if_they_give_it_back(editor):
    simple = AgentFactory(request_context_schema=SCHEMA)
    foreign = AgentFactory(request_context_schema={**SCHEMA, "additionalProperties": False})

    pages = [editor.get(reverse("agents:edit", args=[agent.pk])).content.decode() for agent in (simple, foreign)]

    data = [form_data(page) for page in pages]
    assert data[0]["request_context_schema-row-default"] == "warm"
    assert "request_context_schema" not in data[0]
    assert "additionalProperties" in data[1]["request_context_schema"]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ([("a", "", "", "", "no"), ("a", "", "", "", "no")], "“a” is declared twice"),
        ([("a", "number", "", "many", "no")], "The default of “a”"),
        ([("a", "number", "", "true", "no")], "The default of a: This must be of the type number."),
        ([("organizationId", "", "", "", "no")], "reserved"),
    ],
)
def test_an_invalid_declaration_is_an_error_of_the_field(editor, agent, variables, message):
    response = save(editor, agent, **rows(*variables))

    assert response.status_code == 422
    assert message in str(response.context["form"].errors["request_context_schema"])


@pytest.mark.parametrize("required", ["null", "5", '{"tone": true}', '"tone"'])
def test_a_schema_that_is_not_valid_stays_json_when_its_fields_are_asked_for(editor, agent, required):
    text = f'{{"properties": {{"tone": {{}}}}, "required": {required}}}'
    sent = editor_form(agent, request_context_schema=text, show="request_context_schema:fields")

    html = editor.post(reverse("agents:fields", args=[agent.pk]), sent).content.decode()

    assert '"required"' in form_data(html)["request_context_schema"]
