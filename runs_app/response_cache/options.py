"""Options of the response cache: those of the agent, and those that a call sends in its request context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentcms.wire.json_types import JSONMapping, JSONObject

PROCESSOR_KEY = "response-cache"
CONTEXT_KEY = "responseCache"  # of the request context of a call

DEFAULT_SECONDS = 300
MAX_SECONDS = 30 * 24 * 60 * 60

OptionText = Annotated[str, Field(max_length=256)]


class AgentCacheOptions(BaseModel):
    """Options of the agent. `scope: null` shares answers between the people who use the agent of a team."""

    # The arguments of the processor, which `runs_app.agent_tools` registers.
    ttl: Annotated[int, Field(ge=1, le=MAX_SECONDS)] = DEFAULT_SECONDS  # seconds
    scope: OptionText | None = ""
    bust: bool = False
    cache_key: OptionText = ""
    tools: bool = False


class CallCacheOptions(BaseModel):
    """Options of a call. They narrow what the agent allows: a call cannot share more than its agent."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # services number their end users

    key: OptionText = ""
    scope: OptionText = ""
    bust: bool = False


@dataclass(frozen=True)
class CacheOptions:
    """The options of one request to the model."""

    seconds: int
    is_shared: bool  # by all people who use the agent
    scopes: tuple[str, str]  # of the agent and of the call
    key: str  # stands for the messages, if it is not blank
    bust: bool  # ask the model, and store its answer
    stores_tool_calls: bool


OptionModel = TypeVar("OptionModel", bound=BaseModel)


def parse_cache_options(model: type[OptionModel], values: JSONMapping) -> tuple[OptionModel, list[str]]:
    """Return the options among values, and the names of those whose values are invalid. These are left out."""
    known = {name: value for name, value in values.items() if name in model.model_fields}
    try:
        return model(**known), []
    except ValidationError as error:
        invalid = {str(issue["loc"][0]) for issue in error.errors()}
        valid = {name: value for name, value in known.items() if name not in invalid}
        return model(**valid), sorted(invalid)


def parse_agent_options(processor: JSONMapping) -> tuple[AgentCacheOptions, list[str]]:
    """Return the options in the configuration of the processor, and the names of those whose values are invalid."""
    return parse_cache_options(AgentCacheOptions, processor)


def merge_cache_options(agent: AgentCacheOptions, request_context: JSONMapping) -> CacheOptions:
    """Return the options of a request. Values of the call that are malformed are ignored."""
    chosen = request_context.get(CONTEXT_KEY)
    call, _ = parse_cache_options(CallCacheOptions, chosen if isinstance(chosen, dict) else {})
    return CacheOptions(
        seconds=agent.ttl,
        # A key of the call stands for its messages, so others would get an answer to what they did not ask.
        is_shared=agent.scope is None and not call.key,
        scopes=(agent.scope or "", call.scope),
        key=call.key or agent.cache_key,
        bust=agent.bust or call.bust,
        stores_tool_calls=agent.tools,
    )


def has_call_options(request_context: JSONMapping) -> bool:
    """Return whether a call chooses options of the cache."""
    return isinstance(request_context.get(CONTEXT_KEY), dict)


def bust_cache(request_context: JSONMapping) -> JSONObject:
    """Return a request context with which the model is asked, although the answer may be stored."""
    chosen = request_context.get(CONTEXT_KEY)
    return {**request_context, CONTEXT_KEY: {**(chosen if isinstance(chosen, dict) else {}), "bust": True}}
