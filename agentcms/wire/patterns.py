"""Regular expressions that users write. They take linear time."""

from __future__ import annotations

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema


class Pattern:
    """A regular expression of an engine without look-around and back references."""

    def __init__(self, pattern: str) -> None:
        # The engine of pydantic-core, in Rust, takes linear time. Python's `re` may take exponential time for a
        # pattern.
        self._validator = SchemaValidator(core_schema.str_schema(pattern=pattern))

    def occurs_in(self, text: str) -> bool:
        """Return whether the pattern occurs anywhere in a text."""
        try:
            self._validator.validate_python(text)
        except ValidationError:
            return False
        return True


def compile_pattern(pattern: str) -> Pattern:
    """Return a pattern. Raise ValueError for what is not a pattern, and for one that the engine does not know."""
    try:
        return Pattern(pattern)
    except SchemaError as error:
        raise ValueError(str(error)) from None
