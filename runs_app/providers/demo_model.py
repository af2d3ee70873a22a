"""The built-in provider `demo`: a model that needs no key, says the same to the same, and calls tools when asked to.

It imports pydantic-ai, which is heavy: import this module where an agent is built, never at start-up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    RetryPromptPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from runs_app.providers.demo_calls import wanted_calls

NAMES = ("echo", "storyteller")
DELAY = 0.01  # seconds between two words, so that a stream is seen to stream
LONGEST_DELAY = 2.0
LONGEST_QUOTE = 120  # characters

STORY = (
    "Once, in a house at the edge of a town, somebody asked about {subject}.",
    "Nobody there knew the answer, so the youngest of them put on her boots and went to look for it.",
    "She asked the baker, who said that {subject} was a matter of patience and of good flour.",
    "She asked the clockmaker, who said that it was a matter of time.",
    "By evening she had asked so many people that she understood something which none of them had told her.",
    "She went home, sat down by the window and wrote it into a book with a green cover.",
    "The book is still there. Whoever opens it finds one line: what you look for in {subject}, you bring along.",
)


def demo_model(name: str, settings: Mapping[str, Any]) -> FunctionModel:
    """One of the demo's models; `delay` among the settings is the seconds between two words."""
    delay = settings.get("delay", DELAY)
    wait = min(max(float(delay), 0.0), LONGEST_DELAY) if isinstance(delay, int | float) else DELAY

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        told = results(messages)
        prompts = [*said(messages)]
        if not told and (calls := wanted_calls(prompts[-1] if prompts else "", info)):
            yield calls
            return
        for word in words(text(name, prompts, told, info.instructions or "")):
            yield word
            await asyncio.sleep(wait)

    return FunctionModel(stream_function=answer, model_name=name)


def said(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """What the user wrote, in order."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield part.content if isinstance(part.content, str) else " ".join(map(str, part.content))


def results(messages: Sequence[ModelMessage]) -> list[str]:
    """What the tools said that were called last, each in a sentence."""
    last = messages[-1]
    if not isinstance(last, ModelRequest):
        return []
    return [
        f"{part.tool_name} says {part.model_response_str()}"
        if isinstance(part, ToolReturnPart)
        else f"{part.tool_name} refused: {part.model_response()}"
        for part in last.parts
        if isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name)
    ]


def text(name: str, prompts: Sequence[str], told: Sequence[str], instructions: str) -> str:
    """The answer. It says whose it is, so that nobody takes it for a model's opinion."""
    if told:
        return f"I am the demo model '{name}'. {'; '.join(told)}."
    prompt = prompts[-1] if prompts else ""
    if name == "storyteller":
        story = " ".join(STORY).format(subject=quoted(prompt, 60) or "nothing")
        return f"I am the demo model 'storyteller'. {story}"
    before = f" Before that: {quoted(prompts[-2])}" if len(prompts) > 1 else ""
    # Two versions of an agent, side by side, differ in what they were told.
    known = f"\n\nMy instructions begin: {quoted(instructions)}" if instructions.strip() else ""
    return f"I am the demo model 'echo'. You said: {prompt}{before}{known}"


def quoted(text: str, most: int = LONGEST_QUOTE) -> str:
    """The first line of a text, shortened."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def words(text: str) -> list[str]:
    """The text cut after each space."""
    return text.replace(" ", " \0").split("\0")
