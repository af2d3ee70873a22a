"""A cache of tool schemas in the form that a model requires.

Some models need schemas without references. Replacing them takes a second for the largest, and pydantic-ai does it on
the event loop in each step. With the cache, a thread does it once before the run.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from cachetools import LRUCache
from pydantic_ai import JsonSchemaTransformer
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.tools import ToolDefinition

from agentcms.cache import SizeLimitedCache
from agentcms.wire.json_types import JSONObject
from runs_app.requests.tool_schemas import reject_large_schema

log = logging.getLogger(__name__)

MAX_LOGGED_LENGTH = 500  # characters of an error, which may quote the schema
MAX_CACHED_LENGTH = 16 * 1024 * 1024  # characters of converted schemas per process
# Its conversion shows whether a transformer replaces references.
SCHEMA_WITH_REFERENCE: JSONObject = {
    "type": "object",
    "properties": {"text": {"$ref": "#/$defs/text"}},
    "$defs": {"text": {"type": "string"}},
}

Schema = JSONObject
Transformer = type[JsonSchemaTransformer]


class ConvertedSchema(NamedTuple):
    """The result of a conversion. It is shared, so nothing may change it."""

    schema: Schema
    is_strict_compatible: bool
    length: int  # characters of JSON


_converted: SizeLimitedCache[tuple[Transformer, bool | None, str], ConvertedSchema] = SizeLimitedCache(
    LRUCache(MAX_CACHED_LENGTH, getsizeof=lambda converted: converted.length)
)


def cache_schemas(profile: ModelProfile) -> ModelProfile:
    """Return the profile of a model whose conversions of schemas are cached."""
    transformer = profile.get("json_schema_transformer")
    if transformer is not None:
        profile["json_schema_transformer"] = caching_transformer(transformer)
    return profile


def convert_schemas(model: Model, tools: Iterable[ToolDefinition]) -> None:
    """Fill the cache with the schemas of tools in the form that a model requires. Call it in a thread."""
    model.customize_request_parameters(ModelRequestParameters(function_tools=[*tools]))


def accepts_schema(model: Model, tool: ToolDefinition) -> bool:
    """Return whether the schema of a tool can be sent to a model. Call it in a thread."""
    transformer = model.profile.get("json_schema_transformer")
    try:
        # Before the conversion: the library limits how many values it copies, but not how long their texts are.
        if getattr(transformer, "replaces_references", False):
            reject_large_schema(tool.parameters_json_schema, tool.name)
        convert_schemas(model, [tool])
    except Exception as error:  # the library expects well-formed schemas, and has several errors for others
        log.warning("The schema of the tool '%s' cannot be sent: %s", tool.name, str(error)[:MAX_LOGGED_LENGTH])
        return False
    return True


@cache
def caching_transformer(transformer: Transformer) -> Transformer:
    """Return a class that converts a schema like the transformer, and each schema once."""

    class CachingTransformer(transformer):  # type: ignore[misc, valid-type]
        """A transformer that looks into the cache first."""

        replaces_references = "$ref" not in json.dumps(transformer(SCHEMA_WITH_REFERENCE).walk())

        def __init__(self, schema: Schema, *, strict: bool | None = None) -> None:
            self.cache_key = (transformer, strict, json.dumps(schema))
            self.converted = _converted.get(self.cache_key)
            if self.converted is None:
                super().__init__(schema, strict=strict)
            else:
                self.is_strict_compatible = self.converted.is_strict_compatible

        def walk(self) -> Schema:
            if self.converted is None:
                schema = super().walk()
                self.converted = ConvertedSchema(schema, self.is_strict_compatible, len(json.dumps(schema)))
                _converted.set(self.cache_key, self.converted)
            return self.converted.schema

    return CachingTransformer
