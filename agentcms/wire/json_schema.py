"""JSON Schemas that users write: their check, and the validation of values by them in a limited time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from attrs import evolve

from agentcms.wire.canonical import canonical
from agentcms.wire.json_parser import count_values
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.patterns import Pattern, compile_pattern
from agentcms.wire.schema_references import (
    REFERENCES,
    leads_out,
    leads_to_no_schema,
    reject_broken_references,
    root_of,
)

if TYPE_CHECKING:
    from jsonschema import SchemaError, ValidationError

MAX_SCHEMA_KB = 100
MAX_STEPS = 60_000  # of the validation of one value; half a second or more
# Comparisons in a keyword that take as long as a step: it looks at each item of a long list, for example.
COMPARISONS_IN_A_STEP = 50
CHARACTERS_IN_A_COMPARISON = 100  # of a text that is searched for a pattern
VALUE_COMPARISONS = 5  # for a value that is written as JSON
MAX_QUOTED_LENGTH = 10_000  # characters; quoting a large value again for each of its errors takes a second
EVALUATED = "unevaluatedProperties"  # the library reads patterns for it with an engine that may take for ever
Keyword = Callable[[Any, Any, Any, Any], Iterator[Any]]


class SchemaUnusable(ValueError):
    """A schema by which a value cannot be validated. The message says why and ends with a full stop."""


class Effort:
    """The work on one value: the steps so far, and the patterns that were compiled for it.

    A step is a keyword, or a part of the schema with the part of the value that it applies to.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.reference: object = None  # the last one that was followed
        self.patterns: dict[str, Pattern | None] = {}

    def count(self, comparisons: int = 0) -> None:
        """Count a step, and more for many comparisons. Raise SchemaUnusable if there were too many."""
        self.steps += 1 + comparisons // COMPARISONS_IN_A_STEP
        if self.steps > MAX_STEPS:
            raise SchemaUnusable("The schema takes too many steps for this value. Simplify the schema.")

    def matches(self, pattern: str, text: str) -> bool:
        """Return whether a pattern occurs in a text. What only other engines know is taken to occur."""
        if pattern not in self.patterns:
            try:
                self.patterns[pattern] = compile_pattern(pattern)
            except ValueError:
                self.patterns[pattern] = None
        self.count(len(text) // CHARACTERS_IN_A_COMPARISON)
        compiled = self.patterns[pattern]
        return compiled is None or compiled.occurs_in(text)


_effort: ContextVar[Effort] = ContextVar("schema_effort")


def reject_invalid_schema(schema: JSONMapping) -> None:
    """Raise ValueError if this is not a JSON Schema."""
    from jsonschema import Draft202012Validator, SchemaError  # loads slowly

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(message_in_json_terms(error)) from None
    except RecursionError:
        raise ValueError("it, or a pattern in it, is nested too deeply") from None
    except OverflowError:
        raise ValueError("a pattern in it has a repeat that is too large") from None


def reject_unusable_schema(schema: JSONMapping) -> None:
    """Raise ValueError if this is not a JSON Schema, or none by which values can be validated here."""
    if len(json.dumps(schema, ensure_ascii=False).encode()) > MAX_SCHEMA_KB * 1024:
        raise ValueError(f"it has more than {MAX_SCHEMA_KB} KB")
    reject_invalid_schema(schema)
    for pattern in find_patterns(schema):
        try:
            compile_pattern(pattern)
        except ValueError:
            message = f"the pattern '{pattern[:100]}' is not available. Leave out look-around and back references"
            raise ValueError(message) from None
    if has_mixed_properties(schema):
        raise ValueError(f"it has both {EVALUATED} and patternProperties. Leave out one of them")
    reject_broken_references(schema)


def reject_mixed_properties(schema: object) -> None:
    """Raise SchemaUnusable for a schema with unevaluatedProperties and patternProperties."""
    if has_mixed_properties(schema):
        raise SchemaUnusable(f"A schema cannot have both {EVALUATED} and patternProperties.")


def has_mixed_properties(schema: object) -> bool:
    names = {name for part in walk(schema) for name in part}
    return {EVALUATED, "patternProperties"} <= names


def find_patterns(schema: object) -> Iterator[str]:
    """Yield the regular expressions of a schema."""
    for part in walk(schema):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        if isinstance(part.get("patternProperties"), dict):
            yield from part["patternProperties"]


def walk(value: object) -> Iterator[JSONObject]:
    """Yield the objects in a JSON value."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


class SchemaValidator:
    """The validation of values by a schema, without requests to other servers and in a limited time.

    `steps` is the work on all values so far.
    """

    def __init__(self, schema: object) -> None:
        from referencing import Registry  # loads slowly

        self.steps = 0
        reject_mixed_properties(schema)
        # A registry of its own fetches nothing.
        self.validator = limited_validator()(schema, registry=Registry(), _resolver=root_of(schema)[1])

    def errors(self, value: object, limit: int) -> list[ValidationError]:
        """Return the first errors of a value. Raise SchemaUnusable."""
        from jsonschema.exceptions import UnknownType  # loads slowly
        from referencing.exceptions import Unresolvable

        # In a context variable, because the keywords of the library get no object of the caller.
        token = _effort.set(Effort())
        try:
            errors = list(islice(self.validator.iter_errors(value), limit))
            for error in errors:
                error.message = message_in_json_terms(error)
        except Unresolvable as error:
            raise SchemaUnusable(f"The schema {leads_out(error)}.") from None
        except RecursionError:
            raise SchemaUnusable("The schema refers to itself without an end, or the value is too deep.") from None
        except SchemaUnusable:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, UnknownType, ValueError):
            # What is not a schema fails anywhere in the library. The check of a schema leaves out unknown members, and
            # so the parts of them that references lead to.
            raise SchemaUnusable(no_schema_message(_effort.get().reference)) from None
        finally:
            self.steps += _effort.get().steps
            _effort.reset(token)
        return errors


def no_schema_message(reference: object) -> str:
    """Return the message about a part that is not a schema, after the last reference that was followed, if any."""
    return f"The schema {'is not a JSON Schema' if reference is None else leads_to_no_schema(reference)}."


def message_in_json_terms(error: ValidationError | SchemaError) -> str:
    """Return the message of an error with its values written by `quoted_json`; the library writes None for null.

    A message of more than MAX_QUOTED_LENGTH stays as it is.
    """
    if len(error.message) > MAX_QUOTED_LENGTH:
        return error.message
    if error.validator is None:  # the schema false
        return f"{quoted_json(error.instance)} is not allowed"
    if error.validator == "const":
        return f"{quoted_json(error.validator_value)} was expected"
    if error.validator == "enum":
        return f"{quoted_json(error.instance)} is not one of {quoted_json(error.validator_value)}"
    quoted = repr(error.instance)
    if error.message.startswith(quoted):
        return quoted_json(error.instance) + error.message.removeprefix(quoted)
    return error.message


def quoted_json(value: object) -> str:
    """Return a value as messages quote it: null and booleans as in JSON, texts in single quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{', '.join(map(quoted_json, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {quoted_json(member)}' for name, member in value.items())}}}"
    return repr(value)


@cache
def limited_validator() -> Any:
    """Return a validator of the library whose keywords count their steps and compare patterns in linear time."""
    from jsonschema import Draft202012Validator, validators  # loads slowly

    keywords = {
        **Draft202012Validator.VALIDATORS,
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
        "uniqueItems": unique_items,
        "unevaluatedItems": unevaluated_items,
        "unevaluatedProperties": unevaluated_properties,
    }
    extend: Any = validators.extend
    limited = extend(Draft202012Validator, {name: counted(name, check) for name, check in keywords.items()})
    limited.evolve = counted_evolve
    return limited


def counted(name: str, keyword: Keyword) -> Keyword:
    def check(validator: object, value: object, instance: object, schema: object) -> Iterator[Any]:
        effort = _effort.get()
        effort.count(comparisons_of(name, value, instance))
        if name in REFERENCES:
            effort.reference = value
        for error in keyword(validator, value, instance, schema) or ():
            # Each keyword around may collect the errors of its parts: thousands, of a long list of required names.
            effort.count()
            yield error

    return check


def counted_evolve(validator: Any, **changes: Any) -> Any:
    """Return the validator of a part of its schema. The library would change to its own one at a member "$schema"."""
    _effort.get().count()
    return evolve(validator, **changes)


def comparisons_of(name: str, value: Any, instance: Any) -> int:
    """Return with how many comparisons a keyword looks at an instance, besides those that are steps themselves."""
    if name in ("enum", "const", "dependentRequired"):
        return count_values(value)
    if name == "uniqueItems":
        return VALUE_COMPARISONS * count_values(instance) if isinstance(instance, list) else 0
    own = len(value) if isinstance(value, dict | list) else 0
    return own + len(instance) if isinstance(instance, dict | list) else 0


def pattern(validator: object, value: str, instance: object, schema: object) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not _effort.get().matches(value, instance):
        yield ValidationError(f"{instance!r} does not match {value!r}")


def pattern_properties(validator: Any, value: JSONObject, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for expression, subschema in value.items():
        for name, member in instance.items():
            _effort.get().count()
            if _effort.get().matches(expression, name):
                yield from validator.descend(member, subschema, path=name, schema_path=expression)


def additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import Draft202012Validator

    if isinstance(instance, dict) and (expressions := schema.get("patternProperties")):
        known = [name for name in instance if any(_effort.get().matches(text, name) for text in expressions)]
        schema = {"properties": {**schema.get("properties", {}), **dict.fromkeys(known, True)}}
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, value, instance, schema)


def unevaluated_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Do what the library does, which searches a list for each item."""
    from jsonschema import ValidationError
    from jsonschema._utils import extras_msg, find_evaluated_item_indexes_by_schema

    if not isinstance(instance, list):
        return
    evaluated = {*find_evaluated_item_indexes_by_schema(validator, instance, schema)}
    if others := [item for index, item in enumerate(instance) if index not in evaluated]:
        quoted, verb = extras_msg(others)
        yield ValidationError(f"Unevaluated items are not allowed ({quoted} {verb} unexpected)")


def unevaluated_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Do what the library does, which searches a list for each property."""
    from jsonschema import ValidationError
    from jsonschema._utils import extras_msg, find_evaluated_property_keys_by_schema

    if not isinstance(instance, dict):
        return
    evaluated = {*find_evaluated_property_keys_by_schema(validator, instance, schema)}
    others = [name for name in instance if name not in evaluated and not is_valid(validator, instance[name], value)]
    if not others:
        return
    quoted, verb = extras_msg(sorted(others) if value is False else others)
    message = f"Unevaluated properties are not allowed ({quoted} {verb} unexpected)"
    if value is not False:
        message = (
            f"Unevaluated properties are not valid under the given schema ({quoted} {verb} unevaluated and invalid)"
        )
    yield ValidationError(message)


def is_valid(validator: Any, instance: object, schema: object) -> bool:
    return next(validator.descend(instance, schema), None) is None


def unique_items(validator: object, value: object, instance: object, schema: object) -> Iterator[Any]:
    from jsonschema import ValidationError

    if value and isinstance(instance, list) and len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")
