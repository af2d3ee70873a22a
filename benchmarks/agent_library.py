"""CPU time of the agent library alone, for the answer that `benchmarks.runs` measures with everything around it.

    python -m benchmarks.agent_library

pydantic-ai streams the answer of the local model server over the client of its provider: no web server, no user, no
database and no events. What a run costs more than this is what Agent CMS adds.
"""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Any

from benchmarks.model_server import model_server
from benchmarks.runs import SHORT_ANSWER

RUNS = 80  # of a round
ROUNDS = 7
CLIENTS = 8


def measure() -> float:
    """Return the CPU milliseconds of a run, the median of several rounds."""
    with model_server() as variables:
        return asyncio.run(median_cpu(variables["MISTRAL_BASE_URL"]))


async def median_cpu(url: str) -> float:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel("instant", provider=OpenAIProvider(base_url=url, api_key="benchmark")))
    await cpu_of_round(agent)  # imports and connections
    rounds = [await cpu_of_round(agent) for _ in range(ROUNDS)]
    return median(rounds)


async def cpu_of_round(agent: Any) -> float:
    started = time.process_time()
    await asyncio.gather(*(repeat_runs(agent) for _ in range(CLIENTS)))
    return (time.process_time() - started) * 1000 / RUNS


async def repeat_runs(agent: Any) -> None:
    for _ in range(RUNS // CLIENTS):
        async with agent.iter(str(SHORT_ANSWER)) as run:
            async for node in run:
                if agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as events:
                        async for _event in events:
                            pass


if __name__ == "__main__":
    print(f"CPU of pydantic-ai and its client for a run: {measure():.1f} ms")
