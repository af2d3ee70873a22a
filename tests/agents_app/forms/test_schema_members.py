"""Inputs for the arguments of a tool, made from its JSON Schema."""

from enum import StrEnum

from pydantic import TypeAdapter

from agents_app.forms.objects.schema import schema_members


class Speed(StrEnum):
    FAST = "fast"
    SLOW = "slow"


def refund(
    order: str, amount: float, notify: bool, speed: Speed, tags: list[str], extra: dict, note: str | None = None
):
    """Have a parameter of each kind."""


def test_each_property_gets_an_input_of_its_kind():
    members = schema_members(TypeAdapter(refund).json_schema()).members

    assert [(member.name, member.kind, member.required) for member in members] == [
        ("order", "text", True),
        ("amount", "number", True),
        ("notify", "choice", True),
        ("speed", "choice", True),
        ("tags", "lines", True),
        ("extra", "json", True),
        ("note", "text", False),
    ]
    assert members[3].choices == (('"fast"', "fast"), ('"slow"', "slow"))


def test_titles_and_descriptions_are_shown():
    schema = {"properties": {"a": {"type": "string", "title": "Order", "description": "As printed."}}}

    (member,) = schema_members(schema).members

    assert (member.label, member.help) == ("Order", "As printed.")


def test_data_that_is_no_object_gets_one_input():
    described = schema_members({"type": "boolean", "title": "Go on?"})

    assert [member.label for member in described.members] == ["Go on?"]
    assert described.unwrap(described.wrap(True)) is True


def test_alternatives_are_edited_as_json():
    assert schema_members({"anyOf": [{"type": "object"}, {"type": "string"}]}) is None
    assert schema_members({"type": "array", "items": {"type": "string"}}) is None


def test_invalid_schemas_raise_no_error():
    circle = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}

    assert schema_members(circle).members == ()
    assert schema_members(None).members == ()
    assert schema_members({"properties": {"a": None, "b": {"type": "array", "items": 1}}, "required": 3}) is not None
