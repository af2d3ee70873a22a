"""The order of the properties in JSON Schemas that a database has stored."""

import pytest

from agentcms.wire.property_order import restore_property_order


def schema(*names, required=None, **members):
    required = names if required is None else required
    return {"type": "object", "properties": {name: {} for name in names}, "required": [*required], **members}


def order(stored):
    return [*restore_property_order(stored)["properties"]]


def test_sorted_properties_get_the_order_in_which_they_are_required():
    assert order(schema("score", "reason", required=["reason", "score"])) == ["reason", "score"]
    assert order(schema("é", "aaaa", "reason", required=["reason", "é"])) == ["reason", "é", "aaaa"]


def test_an_order_of_the_caller_stays():
    assert order(schema("reason", "score", required=["score", "reason"])) == ["reason", "score"]


def test_schemas_in_schemas_get_their_order():
    inner = schema("b", "aa", required=["aa", "b"])
    outer = {"items": inner, "$defs": {"x": inner}, "anyOf": [{"type": "null"}, inner]}

    restored = restore_property_order({"type": "object", **outer, "properties": {"part": inner}})

    places = (restored["items"], restored["$defs"]["x"], restored["anyOf"][1], restored["properties"]["part"])
    assert [[*place["properties"]] for place in places] == [["aa", "b"]] * 4


def test_data_in_a_schema_stays():
    data = {"properties": {"b": 1, "aa": 2}, "required": ["aa", "b"]}
    given = schema("b", const=data, default=data, enum=[data], examples=[data])

    restored = restore_property_order(given)

    assert [str(restored[name]) for name in ("const", "default", "enum", "examples")] == [
        str(given[name]) for name in ("const", "default", "enum", "examples")
    ]


@pytest.mark.parametrize(
    "stored", [{"properties": 5}, {"properties": {"b": {}}, "required": 7}, {"required": [{}, 1]}]
)
def test_a_schema_without_an_order_stays(stored):
    assert restore_property_order(stored) == stored


def test_a_property_may_have_the_name_of_a_keyword():
    names = ["enum", "properties", "required"]

    assert order(schema(*sorted(names, key=len), required=names)) == names


def test_a_property_with_the_name_of_a_keyword_has_its_own_order():
    inner = schema("b", "aa", required=["aa", "b"])

    restored = restore_property_order({"type": "object", "properties": {"default": inner, "enum": inner}})

    assert [[*part["properties"]] for part in restored["properties"].values()] == [["aa", "b"]] * 2
