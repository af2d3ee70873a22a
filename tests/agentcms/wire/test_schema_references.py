"""References in JSON Schemas that users write."""

import time

import pytest

from agentcms.wire.schema_references import reject_broken_references


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"next": {"$ref": "#"}, "$ref": {"type": "string"}}},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"$anchor": "word", "type": "string"}}, "items": {"$ref": "#word"}},
        {"$defs": {"a": {"$dynamicAnchor": "word"}}, "items": {"$dynamicRef": "#word"}},
        {
            "$id": "https://example.org/a",
            "$ref": "b",
            "$defs": {"b": {"$id": "b", "$ref": "#/$defs/c", "$defs": {"c": {}}}},
        },
        {"definitions": {"a": {"type": "string"}, "b": {"$ref": "#/definitions/a"}}, "$ref": "#/definitions/b"},
        {"$ref": "#/a~1b/c%25d", "a/b": {"c%d": True}},
        {"const": {"$ref": "#/nowhere"}, "default": {"$ref": "#/nowhere"}, "examples": [{"$ref": "#/nowhere"}]},
        {
            "$ref": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"a": {"$id": "https://json-schema.org/draft/2020-12/schema"}},
        },
    ],
)
def test_references_that_lead_to_schemas_are_accepted(schema):
    reject_broken_references(schema)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "#/$defs/a"}, "it refers to #/$defs/a, which is not part of it"),
        ({"items": {"$ref": "#word"}}, "it refers to #word, which is not part of it"),
        ({"$ref": "https://example.org/a"}, "it refers to https://example.org/a, which is not part of it"),
        ({"$dynamicRef": "#word"}, "it refers to #word, which is not part of it"),
        ({"$ref": "#/x", "x": {"$ref": "#/y"}}, "it refers to #/y, which is not part of it"),
        ({"$ref": "#/x", "x": {"items": {"$ref": "#/y"}}}, "it refers to #/y, which is not part of it"),
        ({"$ref": "#/x", "x": {"type": "word"}}, "it refers to #/x, which is not a JSON Schema"),
        ({"$ref": "#/title", "title": "word"}, "it refers to #/title, which is not a JSON Schema"),
        ({"$ref": "#/title/a", "title": "word"}, "it refers to #/title/a, which is not a JSON Schema"),
        ({"$ref": "#/allOf/a", "allOf": [True]}, "it refers to #/allOf/a, which is not a JSON Schema"),
        ({"$ref": "#/allOf", "allOf": [True]}, "it refers to #/allOf, which is not a JSON Schema"),
    ],
)
def test_references_that_lead_to_no_schema_are_refused(schema, message):
    with pytest.raises(ValueError) as error:
        reject_broken_references(schema)

    assert str(error.value) == message


def nested(depth):
    return {"a": nested(depth - 1), "b": {"enum": list(range(200))}} if depth else {}


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(2000)} | {"a2000": {}}},
        {"$defs": {"a": {"$anchor": "a"}}, "allOf": [{"$ref": "#a"}] * 6000},
        {"allOf": [{"$ref": "#/x" + "/a" * depth} for depth in range(100)] * 20, "x": nested(100)},
    ],
    ids=["chain", "anchor", "nested"],
)
def test_many_references_are_read_in_a_limited_time(schema):
    started = time.thread_time()

    reject_broken_references(schema)

    assert time.thread_time() - started < 5
