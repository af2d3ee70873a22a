"""Inputs for the properties of a JSON Schema, such as the arguments of a tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.forms.objects.members import Member, format_json, is_plain_name

MAX_MEMBERS = 50
MAX_SCHEMA_CHOICES = 100
WHOLE_VALUE = "value"  # the name of the input for data that is not an object
YES_OR_NO = (("true", "Yes"), ("false", "No"))

JSONSchema = JSONMapping


class SchemaMembers(NamedTuple):
    """The members of an object, one for each property.

    If the schema is not that of an object, the only member is the whole value and `is_object` is False.
    """

    members: tuple[Member, ...]
    is_object: bool = True

    def wrap(self, value: object) -> object:
        """Return a value as the object that the inputs edit."""
        return value if self.is_object else {WHOLE_VALUE: value}

    def unwrap(self, value: JSONValue) -> object:
        """Return the value of an edited object."""
        return value if self.is_object else (value or {}).get(WHOLE_VALUE)


def schema_members(schema: JSONSchema | None) -> SchemaMembers | None:
    """Return the members that a JSON Schema describes, or None if only JSON can be its input."""
    if not isinstance(schema, Mapping):
        return SchemaMembers(())
    root = resolve_schema(schema, schema)
    properties = root.get("properties")
    if isinstance(properties, Mapping):
        return SchemaMembers(tuple(property_members(root, schema)))
    if root.get("type") in {"string", "number", "integer", "boolean"} or "enum" in root:
        return SchemaMembers((build_member(WHOLE_VALUE, root, schema, required=True),), is_object=False)
    return None if root.keys() & {"anyOf", "oneOf", "allOf", "items"} else SchemaMembers(())


def property_members(root: JSONSchema, schema: JSONSchema) -> Iterator[Member]:
    # A schema may come from a server of others, which sends anything.
    required = root.get("required")
    names = required if isinstance(required, list) else []
    for name, property_schema in [*root["properties"].items()][:MAX_MEMBERS]:
        if is_plain_name(name):
            yield build_member(name, resolve_schema(property_schema, schema), schema, required=name in names)


def build_member(name: str, described: JSONSchema, schema: JSONSchema, *, required: bool) -> Member:
    """Return the input for a property. `schema` is the complete one, to which references point."""
    label = str(described.get("title") or name.replace("_", " ").capitalize())
    help_text = str(described.get("description") or "")
    choices = find_choices(described)
    kind = "choice" if choices else find_kind(described, schema)
    return Member(name, label, kind, help_text, choices, required)


def find_choices(described: JSONSchema) -> tuple[tuple[str, str], ...]:
    values = described.get("enum")
    # A select and no checkbox, which could not show that nothing is set.
    if described.get("type") == "boolean":
        return YES_OR_NO
    if "const" in described:
        values = [described["const"]]
    if not isinstance(values, list) or len(values) > MAX_SCHEMA_CHOICES:
        return ()
    return tuple((format_json(value), value if isinstance(value, str) else format_json(value)) for value in values)


def find_kind(described: JSONSchema, schema: JSONSchema) -> str:
    """Return the kind of input of a property. Values without an input of their own are edited as JSON."""
    match described.get("type"):
        case "string":
            return "text"
        case "number" | "integer":
            return "number"
        case "array" if resolve_schema(described.get("items"), schema).get("type") == "string":
            return "lines"
    return "json"


def resolve_schema(described: object, schema: JSONSchema) -> JSONSchema:
    """Return a schema without references into `$defs` and without the alternative null."""
    for _ in range(MAX_MEMBERS):  # references may form a circle
        if not isinstance(described, Mapping):
            return {}
        alternatives = described.get("anyOf")
        if isinstance(alternatives, list):
            values = [option for option in alternatives if option != {"type": "null"}]
            if len(values) != 1 or not isinstance(values[0], Mapping):
                return described
            described = {**without(described, "anyOf"), **values[0]}
        elif (target := find_reference(described, schema)) is not None:
            described = {**target, **without(described, "$ref")}
        else:
            return described
    return {}


def find_reference(described: JSONSchema, schema: JSONSchema) -> JSONSchema | None:
    """Return the definition that a schema refers to, or None."""
    reference, definitions = described.get("$ref"), schema.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, Mapping):
        return None
    definition = definitions.get(reference.removeprefix("#/$defs/"))
    return definition if isinstance(definition, Mapping) else None


def without(described: JSONSchema, name: str) -> JSONObject:
    return {key: value for key, value in described.items() if key != name}
