"""The registry entries of knowledge bases, with the schema of their tool."""

from __future__ import annotations

from collections.abc import Mapping

from cachetools import LRUCache

from agentcms.cache import SizeLimitedCache
from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import FILTER_OPERATORS
from agents_app.registry import Entry, Kind
from knowledge_app.search.retrieval import DEFAULT_TOP_K, MAX_QUERY_LENGTH, MAX_TOP_K
from knowledge_app.tool.cached_bases import BaseSummary, base_table

TOOL_PREFIX = "search-"

# Of one revision: all requests ask for the newest.
_entries: SizeLimitedCache[str, Mapping[str, Entry]] = SizeLimitedCache(LRUCache(1))


def knowledge_entries() -> Mapping[str, Entry]:
    """Return the tools of all bases by the key of the base."""
    table = base_table.get()
    return _entries.get_or_create(
        table.revision, lambda: {key: build_knowledge_entry(base) for key, base in table.records.items()}
    )


def build_knowledge_entry(base: BaseSummary) -> Entry:
    return Entry(
        Kind.KNOWLEDGE,
        base.key,
        base.name,
        tool_description(base),
        schema=search_argument_schema(base),
        names=base.filterable,
        source="staff",
        make=make_tool,
        owner_id=base.owner_id,
        tool_name=f"{TOOL_PREFIX}{base.key}",
    )


def tool_description(base: BaseSummary) -> str:
    text = f"Searches the knowledge base '{base.name}' and returns passages of its documents."
    return f"{text} {base.description}".strip()


def search_argument_schema(base: BaseSummary) -> JSONObject:
    """Return the JSON Schema of the arguments. Without filterable keys there is no filter."""
    properties: JSONObject = {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_QUERY_LENGTH,
            "description": "The question, or what the passage says, in a sentence.",
        },
        "topK": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TOP_K,
            "description": f"The most passages. {DEFAULT_TOP_K} if it is missing.",
        },
    }
    if base.filterable:
        properties["filter"] = {
            "type": "object",
            "description": (
                f"A filter by these keys: {', '.join(base.filterable)}. A key has a value or an operator, such as "
                f'{{"{base.filterable[0]}": {{"$in": ["a", "b"]}}}}. Operators: {", ".join(FILTER_OPERATORS)}; $and '
                "and $or combine lists of filters."
            ),
        }
    return {"type": "object", "properties": properties, "required": ["query"], "additionalProperties": False}


def make_tool(key: str, entry: Entry) -> object:
    """Build the tool of an entry. Imports pydantic-ai, which is heavy."""
    from knowledge_app.tool.search_tool import search_tool

    return search_tool(key, entry)
