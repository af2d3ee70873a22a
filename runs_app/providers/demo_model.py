"""Models of the built-in provider `demo`. They need no API key and answer identical questions identically.

Imports pydantic-ai, which is heavy. Import this module only where an agent is built.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from agentcms.wire.json_types import JSONMapping
from runs_app.providers.demo_calls import build_call, requested_calls
from runs_app.providers.demo_knowledge import is_search_result, quote_passages, search_calls
from runs_app.providers.demo_reader import read_answer_of_person

DEMO_MODEL_NAMES = ("echo", "storyteller")
DEFAULT_DELAY = 0.01  # seconds between two words, so that users see the answer stream
MAX_DELAY = 2.0
MAX_QUOTE_LENGTH = 120  # characters
SIGNATURE = "I am the demo model"
QUOTE_OF_INSTRUCTIONS = "My instructions begin:"
# The end of what judges are asked for.
SCORE_RANGE = re.compile(r"Give a score from (-?[\d.]+) to -?[\d.]+\. The sections ")
REMEMBERED_TAG = "<remembered_from_other_conversation"

STORY = (
    "Once, in a house at the edge of a town, somebody asked about {subject}.",
    "Nobody there knew the answer, so the youngest of them put on her boots and went to look for it.",
    "She asked the baker, who said that {subject} was a matter of patience and of good flour.",
    "She asked the clockmaker, who said that it was a matter of time.",
    "By evening she had asked so many people that she understood something which none of them had told her.",
    "She went home, sat down by the window and wrote it into a book with a green cover.",
    "The book is still there. Whoever opens it finds one line: what you look for in {subject}, you bring along.",
)


def demo_model(name: str, settings: JSONMapping) -> FunctionModel:
    """Return a demo model. The setting `delay` is the number of seconds between two words."""
    delay = settings.get("delay", DEFAULT_DELAY)
    wait = min(max(float(delay), 0.0), MAX_DELAY) if isinstance(delay, int | float) else DEFAULT_DELAY

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        results = tool_results(messages)
        prompts = [*user_prompts(messages)]
        prompt = prompts[-1] if prompts else ""
        if not results and (calls := requested_calls(prompt, info) or search_calls(prompt, info)):
            yield calls
            return
        if info.output_tools:
            text = "; ".join(results) or answer_as_judge(prompt) or prompt
            yield {0: read_answer_of_person(prompt, info) or build_call(info.output_tools[0], 0, text)}
            return
        for word in split_after_spaces(answer_text(name, prompts, results, info.instructions or "")):
            yield word
            await asyncio.sleep(wait)

    async def answer_at_once(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return await join_parts(answer(messages, info))

    return FunctionModel(answer_at_once, stream_function=answer, model_name=name)


async def join_parts(stream: AsyncIterator[str | DeltaToolCalls]) -> ModelResponse:
    """Return a streamed answer as one response: its calls of tools, or else its text. Judges ask for it like this."""
    text = ""
    calls: list[ModelResponsePart] = []
    async for part in stream:
        if isinstance(part, str):
            text += part
        else:
            calls += [ToolCallPart(call.name or "", call.json_args, call.tool_call_id or "") for call in part.values()]
    return ModelResponse(parts=calls or [TextPart(text)])


def answer_as_judge(prompt: str) -> str:
    """Return the answer of a judge, which begins with the lowest score, or a blank text for another prompt.

    The first number of the prompt may be one of the answer that is judged.
    """
    lowest = SCORE_RANGE.search(prompt)
    return f"{lowest[1]}: {SIGNATURE}, which cannot judge." if lowest else ""


def user_prompts(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield the texts of the user in order."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield part.content if isinstance(part.content, str) else " ".join(map(str, part.content))


def tool_results(messages: Sequence[ModelMessage]) -> list[str]:
    """Return a sentence for each result of the last tool calls."""
    last = messages[-1]
    if not isinstance(last, ModelRequest):
        return []
    return [
        result_text(part)
        for part in last.parts
        if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name)
    ]


def result_text(part: ToolReturnPart | RetryPromptPart) -> str:
    if isinstance(part, RetryPromptPart):
        return f"{part.tool_name} refused: {part.model_response()}"
    if is_search_result(part.content):
        return quote_passages(part.content)
    # The answer ends its own sentence.
    return f"{part.tool_name} says {part.model_response_str().removesuffix('.')}"


def answer_text(name: str, prompts: Sequence[str], results: Sequence[str], instructions: str) -> str:
    """Return the answer. It names the demo model, so that nobody mistakes it for the answer of a real one."""
    if results:
        return f"{SIGNATURE} '{name}'. {'; '.join(results)}."
    prompt = prompts[-1] if prompts else ""
    if name == "storyteller":
        story = " ".join(STORY).format(subject=first_line(prompt, 60) or "nothing")
        return f"{SIGNATURE} 'storyteller'. {story}"
    before = f" Before that: {first_line(prompts[-2])}" if len(prompts) > 1 else ""
    if remembered := remembered_line(instructions, prompt):
        before = f" I remember: {remembered}{before}"
        instructions = instructions.partition(REMEMBERED_TAG)[0]
    # Users compare versions side by side, so the answer depends on the instructions.
    quote = f"\n\n{QUOTE_OF_INSTRUCTIONS} {first_line(instructions)}" if instructions.strip() else ""
    return f"{SIGNATURE} 'echo'. You said: {prompt}{before}{quote}"


def remembered_line(instructions: str, prompt: str) -> str:
    """Return the line of another conversation that shares the most words with the prompt, or a blank text.

    The same question of an earlier conversation and answers of this model count only if there is nothing else.
    """
    block = instructions.partition(REMEMBERED_TAG)[2].splitlines()[1:]
    lines = [line for line in block if line and not line.startswith(("<", QUOTE_OF_INSTRUCTIONS))]
    lines = [line for line in lines if SIGNATURE not in line and prompt.strip() not in line] or lines
    words = {*prompt.lower().strip("?.! ").split()}
    return first_line(max(lines, key=lambda line: len(words & {*line.lower().split()}), default=""))


def first_line(text: str, max_length: int = MAX_QUOTE_LENGTH) -> str:
    """Return the first line of a text, truncated."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"


def split_after_spaces(text: str) -> list[str]:
    """Split a text after each space."""
    return text.replace(" ", " \0").split("\0")
