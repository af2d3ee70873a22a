"""Variables of an agent: the placeholders in its instructions, and their declarations.

A placeholder is `{{name}}`, `{{path.to.value}}` or `{{name || 'default'}}`. The declarations are a JSON Schema of an
object, `requestContextSchema`, as in the protocol of the published client: its properties are the variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping, JSONValue
from agents_app.configuration.fields.types import validation_error

MAX_VARIABLES = 100  # of one agent
MAX_VARIABLE_NAME_LENGTH = 128
MAX_VARIABLE_DESCRIPTION_LENGTH = 2000

# The server's own values in the request context of the protocol. Callers must not set them.
RESERVED_VARIABLE_PREFIX = "mastra__"
RESERVED_VARIABLE_NAMES = frozenset({"organizationId"})

PLACEHOLDER = re.compile(r"""\{\{\s*([\w-]+(?:\.[\w-]+)*)\s*(?:\|\|\s*('[^']*'|"[^"]*")\s*)?\}\}""")

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


class Placeholder(NamedTuple):
    """A place in a text that a variable fills. `default` is None without one."""

    path: str
    default: str | None
    start: int
    end: int


class Variable(NamedTuple):
    """A variable of an agent. `types` and `choices` are empty if any value is allowed."""

    name: str
    description: str = ""
    default: JSONValue = None
    is_required: bool = False
    types: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()

    @classmethod
    def of(cls, name: str, schema: object, *, is_required: bool) -> Self:
        """Return the variable that a property declares. Rows that were never validated may have any value."""
        schema = schema if isinstance(schema, dict) else {}
        types = schema.get("type")
        choices = schema.get("enum")
        return cls(
            name,
            description=str(schema.get("description") or ""),
            default=schema.get("default"),
            is_required=is_required,
            types=tuple(types) if isinstance(types, list) else (types,) if isinstance(types, str) else (),
            choices=tuple(choices) if isinstance(choices, list) else (),
        )

    def value_error(self, value: object) -> str:
        """Return why a value is not allowed, or a blank text."""
        if self.types and not any(has_json_type(value, name) for name in self.types):
            return f"This must be of the type {' or '.join(self.types)}."
        if self.choices and not any(json_equal(value, choice) for choice in self.choices):
            return f"This must be one of {', '.join(map(str, self.choices))}."
        return ""


def is_reserved(name: str) -> bool:
    """Return whether only the server may set this key of a request context."""
    return name.startswith(RESERVED_VARIABLE_PREFIX) or name in RESERVED_VARIABLE_NAMES


def has_json_type(value: object, name: str) -> bool:
    """Return whether a value has a type of JSON Schema. Unknown types allow all values."""
    if name not in JSON_TYPES:
        return True
    if isinstance(value, bool):  # which is an int in Python
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, JSON_TYPES[name])


def find_placeholders(text: str) -> Iterator[Placeholder]:
    """Yield the placeholders of a text in order."""
    for match in PLACEHOLDER.finditer(text):
        default = match[2]
        yield Placeholder(match[1], None if default is None else default[1:-1], *match.span())


def declared_variables(configuration: JSONMapping) -> list[Variable]:
    """Return the variables that a configuration in wire names declares."""
    schema = configuration.get("requestContextSchema")
    schema = schema if isinstance(schema, dict) else {}
    properties, required = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    names = dict.fromkeys([*properties, *required])
    return [Variable.of(name, properties.get(name), is_required=name in required) for name in names]


def variables_of(configuration: JSONMapping) -> list[Variable]:
    """Return the declared variables, and then those that only the instructions name, with their defaults there."""
    declared = declared_variables(configuration)
    known = {variable.name for variable in declared}
    others: dict[str, Variable] = {}
    for place in find_placeholders(str(configuration.get("instructions") or "")):
        # `{{user.name}}` reads a member of the declared variable `user`.
        if place.path in known or place.path.partition(".")[0] in known:
            continue
        # Of several places of a variable, the first one with a default decides.
        if place.path not in others or others[place.path].default is None:
            others[place.path] = Variable(place.path, default=place.default)
    return [*declared, *others.values()]


# --- The schema of the declarations


def _validate_name(name: str) -> str:
    if not name.strip():
        raise validation_error("The name of a variable may not be blank.")
    if is_reserved(name):
        raise validation_error(f"'{name}' is reserved for the server. Choose another name.")
    return name


def _validate_types(value: object) -> object:
    names = value if isinstance(value, list) and value else [value]
    if not all(isinstance(name, str) and name in JSON_TYPES for name in names):
        raise validation_error(f"The type must be one of {', '.join(JSON_TYPES)}, or a list of them.")
    return value


def _validate_choices(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise validation_error("This must be a list of the allowed values.")
    return value


TYPE_SCHEMA = {"anyOf": [{"enum": [*JSON_TYPES]}, {"type": "array", "minItems": 1, "items": {"enum": [*JSON_TYPES]}}]}
CHOICES_SCHEMA = {"type": "array", "minItems": 1, "description": "The allowed values."}
VariableName = Annotated[str, Field(min_length=1, max_length=MAX_VARIABLE_NAME_LENGTH), AfterValidator(_validate_name)]


class VariableSchema(BaseModel):
    """A variable as JSON Schema. Members other than these are stored and have no effect."""

    model_config = ConfigDict(strict=True, extra="allow")

    type: Annotated[Any, AfterValidator(_validate_types), WithJsonSchema(TYPE_SCHEMA)] = None
    description: Annotated[str, Field(max_length=MAX_VARIABLE_DESCRIPTION_LENGTH)] | None = None
    default: JSONValue = None
    enum: Annotated[Any, AfterValidator(_validate_choices), WithJsonSchema(CHOICES_SCHEMA)] = None


def _validate_type_of_all(value: object) -> object:
    if value != "object":
        raise validation_error('The type of the request context is "object".')
    return value


def _validate_defaults(properties: dict[str, VariableSchema]) -> dict[str, VariableSchema]:
    for name, schema in properties.items():
        variable = Variable.of(name, schema.model_dump(exclude_unset=True), is_required=False)
        if variable.default is not None and (message := variable.value_error(variable.default)):
            raise validation_error(f"The default of {name}: {message}")
    return properties


class RequestContextSchema(BaseModel):
    """The variables of an agent as the JSON Schema of a request context."""

    model_config = ConfigDict(strict=True, extra="allow")

    type: Annotated[Any, AfterValidator(_validate_type_of_all), WithJsonSchema({"const": "object"})] = "object"
    properties: Annotated[
        dict[VariableName, VariableSchema], Field(max_length=MAX_VARIABLES), AfterValidator(_validate_defaults)
    ] = Field(default_factory=dict)
    required: Annotated[list[VariableName], Field(max_length=MAX_VARIABLES)] = Field(default_factory=list)
