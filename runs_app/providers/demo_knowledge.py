"""Searches of the demo model: it searches the knowledge bases of its agent, quotes what it finds and names the source.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeGuard

from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls

from agentcms.wire.json_types import JSONMapping
from agents_app.registry import Kind

MAX_QUOTES = 2
MAX_QUOTE_WORDS = 60
MAX_DEMO_QUERY_LENGTH = 1000

is_mark = re.compile(r"</?passage-[0-9a-f]+>").fullmatch


def search_calls(prompt: str, info: AgentInfo) -> DeltaToolCalls:
    """Return a search of each knowledge base of the agent for the words of the user."""
    tools = [tool for tool in info.function_tools if (tool.metadata or {}).get("kind") == Kind.KNOWLEDGE.value]
    if not prompt.strip() or (info.model_settings or {}).get("tool_choice") == "none":
        return {}
    arguments = json.dumps({"query": prompt.strip()[:MAX_DEMO_QUERY_LENGTH]})
    return {
        number: DeltaToolCall(tool.name, arguments, tool_call_id=f"demo_{number}_{tool.name}")
        for number, tool in enumerate(tools)
    }


def is_search_result(content: object) -> TypeGuard[JSONMapping]:
    return isinstance(content, Mapping) and "knowledgeBase" in content


def quote_passages(content: JSONMapping) -> str:
    """Return the best passages of a search with their sources."""
    results = content.get("results") or []
    if not results:
        return f"The knowledge base '{content['knowledgeBase']}' says nothing about that"
    return "\n\n".join(
        f"“{quotation(row['text'])}” ({row['document']}, {row['place']})" for row in results[:MAX_QUOTES]
    )


def quotation(text: str) -> str:
    """Return the first words of a passage without its boundary and headings."""
    lines = [line for line in text.splitlines() if not is_mark(line) and not line.startswith("#")]
    words = " ".join(lines).split()
    return " ".join(words[:MAX_QUOTE_WORDS]) + (" …" if len(words) > MAX_QUOTE_WORDS else "")
