"""Validation of JSON Schemas themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reject_invalid_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError if this is not a JSON Schema."""
    from jsonschema import Draft202012Validator, SchemaError  # loads slowly

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(error.message) from None
