"""The models that a memory names."""

from __future__ import annotations

from collections.abc import Iterator

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.memory.options import LOCAL_EMBEDDERS, parse_memory_options


def model_paths(memory: object) -> Iterator[tuple[str, str]]:
    """Yield the path and the provider of each model that a stored memory names."""
    options = parse_memory_options(memory)
    if options is None:
        return
    choices: JSONObject = {"embedder": options.embedder}
    if options.title:
        choices["options.generateTitle.model"] = options.title.model
    if observational := options.observational:
        choices["observationalMemory.model"] = observational.model
        choices["observationalMemory.observation.model"] = observational.observation.model
        choices["observationalMemory.reflection.model"] = observational.reflection.model
    for path, choice in choices.items():
        provider = provider_of(choice)
        # An embedder in this process needs no provider that staff could remove.
        if provider and provider != LOCAL_EMBEDDERS:
            yield path, provider


def provider_of(choice: object) -> str:
    """Return the provider of a model that is named as a text or an object, or a blank text."""
    if isinstance(choice, dict):
        return str(choice.get("provider") or "")
    return choice.partition("/")[0] if isinstance(choice, str) and "/" in choice else ""


def model_choice(choice: JSONValue, fallback: JSONMapping) -> JSONMapping:
    """Return a model as an object with provider and name. Without a choice, the fallback."""
    if isinstance(choice, str):
        provider, _, name = choice.partition("/")
        return {"provider": provider, "name": name}
    return choice or fallback
