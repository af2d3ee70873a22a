"""Placeholders in instructions and the declarations of variables."""

import pytest

from agents_app.configuration.variables import Variable, declared_variables, find_placeholders, variables_of


def placeholders(text):
    return [(place.path, place.default) for place in find_placeholders(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {{name}}!", [("name", None)]),
        ("{{ name }} {{\tuser.home-town\n}}", [("name", None), ("user.home-town", None)]),
        ("{{tone || 'friendly'}} {{tone||\"\"}}", [("tone", "friendly"), ("tone", "")]),
        ("{{a || 'it\"s'}} {{b || \"it's }} fine\"}}", [("a", 'it"s'), ("b", "it's }} fine")]),
        ("{{{name}}} {{größe}}", [("name", None), ("größe", None)]),
        ("{{items.0.id}}", [("items.0.id", None)]),
    ],
)
def test_placeholders_are_found(text, expected):
    assert placeholders(text) == expected


@pytest.mark.parametrize(
    "text", ["{name}", "{{}}", "{{ a b }}", "{{#if a}}", "{{a | b}}", "{{a || b}}", "{{a.}}", "{{.a}}", "{{a || 'b}}"]
)
def test_other_braces_are_text(text):
    assert placeholders(text) == []


def test_variables_are_the_declared_ones_and_those_of_the_instructions():
    configuration = {
        "instructions": "{{tone}} {{user.name}} {{city || 'Bonn'}} {{plan.name}} {{city}}",
        "requestContextSchema": {
            "properties": {
                "tone": {
                    "type": "string",
                    "description": "How to write.",
                    "default": "calm",
                    "enum": ["calm", "loud"],
                },
                "plan": {"type": ["object", "null"]},
            },
            "required": ["plan", "seat"],
        },
    }

    assert variables_of(configuration) == [
        Variable("tone", "How to write.", "calm", False, ("string",), ("calm", "loud")),
        Variable("plan", is_required=True, types=("object", "null")),
        Variable("seat", is_required=True),
        Variable("user.name"),
        Variable("city", default="Bonn"),
    ]


@pytest.mark.parametrize("schema", [None, {}, [], "x", {"properties": [], "required": {}}, {"properties": {}}])
def test_rows_without_valid_declarations_have_none(schema):
    assert declared_variables({"requestContextSchema": schema}) == []


@pytest.mark.parametrize(
    ("schema", "value", "allowed"),
    [
        ({}, [1], True),
        ({"type": "string"}, "a", True),
        ({"type": "string"}, 1, False),
        ({"type": "integer"}, 2.0, True),
        ({"type": "integer"}, 2.5, False),
        ({"type": "number"}, True, False),
        ({"type": ["boolean", "null"]}, False, True),
        ({"type": "object"}, {}, True),
        ({"type": "array"}, {}, False),
        ({"enum": [1, "a"]}, 1, True),
        ({"enum": [1, "a"]}, True, False),
    ],
)
def test_a_declaration_refuses_values_of_other_types(schema, value, allowed):
    message = Variable.of("tone", schema, is_required=False).value_error(value)

    assert bool(message) is not allowed
