"""Schemas that users write: what they refuse, and those that would take for ever or ask other servers."""

import re
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from agentcms.wire.json_schema import SchemaUnusable, SchemaValidator, reject_unusable_schema

SECONDS = 20  # of CPU; the cases below would take hours

doubling = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
DOUBLING = {"$defs": {**doubling, "a60": {}}, "$ref": "#/$defs/a0"}


def messages(schema, value):
    return [error.message for error in SchemaValidator(schema).errors(value, 10)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 5000 + "!"),
        (
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"pattern": "^(a+)+$"}},
            ["a" * 40 + "!"],
        ),
        ({"items": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}}, ["a" * 40 + "!"]),
        ({"patternProperties": {"^(a+)+$": False}, "additionalProperties": False}, {"a" * 40 + "!": 1}),
        ({"propertyNames": {"pattern": "^(a+)+$"}}, {"a" * 40 + "!": 1}),
    ],
)
def test_patterns_take_linear_time(schema, value):
    started = time.thread_time()

    SchemaValidator(schema).errors(value, 10)

    assert time.thread_time() - started < SECONDS


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (DOUBLING, {}),
        ({"$ref": "#"}, 1),
        ({"allOf": [{"items": {"$ref": "#"}}] * 2}, [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]),
        ({"$dynamicRef": "#"}, 1),
    ],
)
def test_schemas_that_grow_without_an_end_are_given_up(schema, value):
    started = time.thread_time()

    with pytest.raises(SchemaUnusable, match=r"too many steps|without an end"):
        SchemaValidator(schema).errors(value, 10)

    assert time.thread_time() - started < SECONDS


LONG = [*range(30_000)]
NAMES = [f"n{number}" for number in range(11_000)]
PATTERNS = {f"a.*b{number}$": {} for number in range(6000)}
WIDE = {f"a{number}": number for number in range(30_000)}
dependent = {
    f"a{n}": {"dependentSchemas": {name: {"$ref": f"#/$defs/a{n + 1}"} for name in ("x", "y")}} for n in range(60)
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"enum": [*range(14_000)]}}, [13_999] * 30_000),
        (
            {"$defs": {"a": {"const": [*range(9000)]}}, "items": {"allOf": [{"$ref": "#/$defs/a"}] * 2000}},
            [[*range(9000)]] * 6,
        ),
        ({"allOf": [{"items": {}}] * 6000}, LONG),
        ({"allOf": [{"items": True}] * 6000}, LONG),
        ({"allOf": [{"uniqueItems": True}] * 4000}, LONG),
        ({"items": {"properties": {f"b{n}": {} for n in range(9000)}}}, [{}] * 30_000),
        ({"allOf": [{"pattern": "^[xyz]+$"}] * 4000}, "xyz" * 150_000),
        ({"items": {"oneOf": [{"required": NAMES}, True]}}, [{}] * 1000),
        ({"items": {"oneOf": [{"dependentRequired": {"a": NAMES}}, True]}}, [{"a": 1}] * 1000),
        ({"items": {"dependentRequired": {"n1": NAMES}}}, [dict.fromkeys(NAMES)] * 9),
        ({"patternProperties": PATTERNS, "additionalProperties": False}, {"a" * 500_000: 1}),
        ({"items": {}, "unevaluatedItems": False}, LONG),
        ({"additionalProperties": {}, "unevaluatedProperties": False}, WIDE),
        ({"unevaluatedProperties": False, "$ref": "#/$defs/a0", "$defs": {**dependent, "a60": {}}}, {"x": 1, "y": 1}),
    ],
    ids=[
        *("enum", "const", "items", "all", "unique", "properties", "pattern", "required", "dependents", "names"),
        *("matches", "list", "object", "dependent"),
    ],
)
def test_the_time_for_a_large_value_is_limited(schema, value):
    started = time.thread_time()

    with suppress(SchemaUnusable):
        SchemaValidator(schema).errors(value, 10)

    assert time.thread_time() - started < 5


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "#/x", "x": {"type": "word"}}, "refers to #/x, which is not a JSON Schema"),
        ({"$ref": "#/title", "title": "word"}, "refers to #/title, which is not a JSON Schema"),
        ({"items": {"$ref": "#/x"}, "x": {"minimum": "a"}}, "refers to #/x, which is not a JSON Schema"),
        ({"$ref": "#/x", "x": {"multipleOf": 0}}, "refers to #/x, which is not a JSON Schema"),
        ({"$ref": "#/allOf/a", "allOf": [True]}, "refers to #/allOf/a, which is not a JSON Schema"),
        ({"type": "word"}, "The schema is not a JSON Schema"),
    ],
)
def test_a_part_that_is_no_schema_is_named(schema, message):
    with pytest.raises(SchemaUnusable, match=message):
        SchemaValidator(schema).errors([1] if "items" in schema else 1, 10)


def chain_of_resources(length):
    """Return a schema of resources that refer to each other. The last one asks all of them for a name."""
    chain = {f"r{n}": {"$id": f"r{n}", "$ref": f"r{n + 1}"} for n in range(length)}
    last = {"$id": f"r{length}", "$defs": {"x": {"$dynamicAnchor": "x"}}, "allOf": [{"$dynamicRef": "#x"}] * 60}
    others = {f"p{n}": {} for n in range(1000)}
    return {"$id": "https://example.org/", "$ref": "r0", "$defs": {**chain, f"r{length}": last, **others}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {f"a{n}": {"$anchor": f"a{n}"} for n in range(1500)}, "allOf": [{"$ref": "#a1"}] * 1500},
        {"$defs": {f"a{n}": {"$id": f"a{n}"} for n in range(1500)}, "allOf": [{"$ref": "a1"}] * 1500},
        chain_of_resources(60),
    ],
    ids=["anchors", "resources", "dynamic"],
)
def test_names_of_parts_are_read_once(schema):
    started = time.thread_time()

    assert messages(schema, 1) == []
    assert time.thread_time() - started < 5


def test_no_other_server_is_asked():
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        for place in (f"http://127.0.0.1:{server.server_port}/schema", "file:///etc/hostname"):
            with pytest.raises(SchemaUnusable, match="not part of it"):
                SchemaValidator({"$ref": place}).errors(1, 10)
    finally:
        server.shutdown()
        server.server_close()
    assert paths == []


def test_many_unequal_objects_are_compared_quickly():
    value = [{"a": number} for number in range(8000)]
    started = time.thread_time()

    assert messages({"uniqueItems": True}, value) == []
    assert len(messages({"uniqueItems": True}, [*value, {"a": 1}])) == 1
    assert time.thread_time() - started < SECONDS


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": "^x"}, "xy", "y"),
        ({"pattern": "^x"}, 7, "y"),
        ({"patternProperties": {"^n": {"type": "number"}}}, {"n1": 1, "x": "x"}, {"n1": "x"}),
        ({"patternProperties": {"^n": {}}, "additionalProperties": False}, {"n1": 1}, {"x": 1}),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "null"}}, {"a": 1, "b": None}, {"b": 1}),
        ({"uniqueItems": True}, [1, True, "1", {"a": 1}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
        ({"unevaluatedProperties": {"type": "number"}}, {"a": 1}, {"a": 1, "b": "x"}),
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1], [1, 2]),
        ({"contains": {"type": "string"}, "unevaluatedItems": {"type": "null"}}, ["a", None], ["a", 1]),
        ({"$defs": {"word": {"type": "string"}}, "items": {"$ref": "#/$defs/word"}}, ["a"], [1]),
    ],
)
def test_values_fit_or_do_not(schema, good, bad):
    assert messages(schema, good) == []
    assert len(messages(schema, bad)) == 1


def test_a_large_list_of_objects_fits_in_the_steps():
    schema = {"items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}}

    assert messages(schema, [{"a": number} for number in range(5000)]) == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "no such type"}, "is not valid"),
        ({"properties": {"a": {"pattern": "(?=a)b"}}}, "look-around"),
        ({"patternProperties": {r"(a)\1": {}}}, "back references"),
        ({"properties": {"a": {"pattern": "(" * 3000}}}, "nested too deeply"),
        ({"patternProperties": {"a{99999999999}": {}}}, "a repeat that is too large"),
        ({"x": {"pattern": "a{99999999999}"}, "$ref": "#/x"}, "which is not a JSON Schema|not available"),
        ({"description": "x" * 200_000}, "100 KB"),
        ({"allOf": [{"patternProperties": {"a": {}}}], "unevaluatedProperties": False}, "it has both"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema, reason):
    with pytest.raises(ValueError, match=reason):
        reject_unusable_schema(schema)


def test_a_pattern_of_another_engine_refuses_no_value():
    """Schemas of MCP servers may have such patterns, and their servers check the value themselves."""
    assert messages({"pattern": "(?=a)b"}, "c") == []


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "string"}, None, "null is not of type 'string'"),
        ({"type": "string"}, {"a": [True, None]}, "{'a': [true, null]} is not of type 'string'"),
        ({"enum": ["a", None]}, False, "false is not one of ['a', null]"),
        ({"const": None}, 1, "null was expected"),
        (
            {"anyOf": [{"type": "string"}, {"type": "number"}]},
            None,
            "null is not valid under any of the given schemas",
        ),
        ({"type": "integer"}, "None", "'None' is not of type 'integer'"),
        ({"properties": {"a": False}}, {"a": None}, "null is not allowed"),
    ],
)
def test_messages_write_null_and_booleans_as_json_does(schema, value, message):
    assert messages(schema, value) == [message]


def test_messages_about_a_schema_write_null_and_booleans_as_json_does():
    with pytest.raises(ValueError, match=r"^true is not of type 'number'$"):
        reject_unusable_schema({"minimum": True})


def test_a_large_value_is_not_quoted_again():
    value = [None] * 10_000

    assert messages({"type": "string"}, value) == [f"{value!r} is not of type 'string'"]


@pytest.mark.parametrize("reference", ["#price", "#/$defs/price", "other.json#/price"])
def test_a_missing_reference_is_named_as_the_schema_writes_it(reference):
    with pytest.raises(SchemaUnusable, match=f"refers to {re.escape(reference)}, which is not part of it"):
        SchemaValidator({"$ref": reference}).errors({}, 1)
