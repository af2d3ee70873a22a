"""The reader of answers: one request to a model that finds the data for a waiting tool in a message.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, StructuredDict, ToolOutput
from pydantic_ai.models import Model

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from runs_app.requests.inlined_schema import inline_references

ANSWER_TOOL_NAME = "answer"
NO_ANSWER_TOOL_NAME = "no_answer"
READER_INSTRUCTIONS = (
    "A tool has asked the user a question and waits for data. Decide whether the message of the user answers it. "
    "If it does, return the data. If it is about something else, or is unclear, return that there is no answer."
)


class NoAnswer(BaseModel):
    """The message does not answer the question."""


async def read_reply(
    model: Model, tool: str, question: JSONValue, schema: JSONMapping, text: str
) -> JSONObject | None:
    """Return the data that a text contains for a waiting tool, or None."""
    agent: Agent[None, Any] = Agent(
        model,
        instructions=READER_INSTRUCTIONS,
        output_type=[
            ToolOutput(StructuredDict(inline_references(schema)), name=ANSWER_TOOL_NAME),
            ToolOutput(NoAnswer, name=NO_ANSWER_TOOL_NAME),
        ],
        retries={"output": 0},  # somebody waits, and what cannot be read starts an ordinary run
    )
    prompt = f"The tool {tool} asks: {json.dumps(question, ensure_ascii=False)}\nThe user says: {text}"
    result: Any = None
    async with agent.run_stream_events(prompt) as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                result = event.result.output
    return result if isinstance(result, dict) else None
