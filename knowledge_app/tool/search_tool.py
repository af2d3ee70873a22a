"""The tool of pydantic-ai that searches a knowledge base.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext, ToolFailed

from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.metadata_filter import AllOf, FilterError, parse_filter
from agents_app.registry import Entry
from knowledge_app.models import KnowledgeBase
from knowledge_app.search.passages import passages_for_model
from knowledge_app.search.retrieval import DEFAULT_TOP_K, MAX_QUERY_LENGTH, MAX_TOP_K, search_base
from knowledge_app.tool.fixed_filter import parse_fixed_filter
from knowledge_app.tool.session_facts import facts_of
from runs_app.building.tools import AgentTool, outside_tool
from runs_app.engine.context import RunDeps
from runs_app.engine.thread_pools import run_blocking


def search_tool(key: str, entry: Entry) -> AgentTool:
    """Build the tool of a base. `entry.target` are the options of the agent: `filter`, `topK`, `minScore`."""
    options: JSONMapping = entry.target or {}

    async def call(context: RunContext[RunDeps], arguments: JSONMapping) -> Any:
        try:
            return await run_blocking(search, key, options, arguments, context.deps)
        except FilterError as error:
            raise ToolFailed(f"Invalid filter: {error}") from None
        except ApiError as error:
            raise ToolFailed(error.error) from None

    # A search changes nothing, so that it may be repeated.
    return outside_tool(entry, call, at_most_once=False, origin={"knowledgeBase": key})


def search(key: str, options: JSONMapping, arguments: JSONMapping, deps: RunDeps) -> JSONObject:
    """Return what the tool answers. Raise ToolFailed, FilterError and ApiError."""
    # The owner is checked at each call: the agent may have been built before the base changed hands.
    base = KnowledgeBase.objects.usable_by(deps.owner_id).select_related("index").filter(key=key).first()
    if base is None:
        raise ToolFailed(f"The knowledge base '{key}' was deleted.")
    fixed = parse_fixed_filter(options.get("filter"), base.filterable, facts_of(deps))
    # Both: a model can narrow the filter of its agent, and not widen it.
    condition = AllOf((fixed, parse_filter(arguments.get("filter"), base.filterable)))
    top_k, min_score = get_top_k(options, arguments), options.get("minScore")
    hits = search_base(base, get_query(arguments), top_k=top_k, condition=condition, min_score=min_score)
    return passages_for_model(base.key, hits, min_score)


def get_query(arguments: JSONMapping) -> str:
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip() or len(query) > MAX_QUERY_LENGTH:
        raise ToolFailed(f"Give a query of 1 to {MAX_QUERY_LENGTH} characters.")
    return query


def get_top_k(options: JSONMapping, arguments: JSONMapping) -> int:
    """Return the number of passages. A model may ask for fewer than its agent allows, not for more."""
    most = options.get("topK") or MAX_TOP_K
    count = arguments.get("topK")
    # A boolean is an integer in Python.
    if not isinstance(count, int) or isinstance(count, bool):
        count = options.get("topK") or DEFAULT_TOP_K
    return max(1, min(count, most, MAX_TOP_K))
