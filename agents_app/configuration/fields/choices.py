"""The objects in a configuration: the model, scorers, tools of MCP servers, knowledge bases and variants."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Tag

from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import FilterError, parse_filter
from agents_app.configuration.fields.programs import reject_program_of_server
from agents_app.configuration.fields.types import (
    MAX_REFERENCES,
    Key,
    Keys,
    LimitKeys,
    NonBlank,
    SimilarityScore,
    choose_by,
    null_resets_to,
    validation_error,
)
from agents_app.configuration.memory.options import MemoryOptions, kind_of_memory
from agents_app.configuration.memory.values import KEY_TAG, OBJECT_TAG
from agents_app.configuration.variants import MAX_VARIANTS, Variant


class ModelChoice(BaseModel):
    """The language model of an agent. Keys other than provider and name are settings of the model."""

    # Here and below: other members belong to the caller, who gets them back. `unknown_in_config` finds them.
    model_config = ConfigDict(strict=True, extra="allow")

    provider: NonBlank
    name: NonBlank


class RatioSampling(BaseModel):
    """Sampling that scores a share of the answers."""

    model_config = ConfigDict(strict=True, extra="allow")

    type: Literal["ratio"]
    rate: Annotated[float, Field(ge=0, le=1)]


class CountSampling(BaseModel):
    """Sampling that scores one of every `count` answers."""

    model_config = ConfigDict(strict=True, extra="allow")

    type: Literal["count"]
    count: Annotated[int, Field(ge=1)]


class ScorerChoice(BaseModel):
    """A scorer of an agent, with its sampling."""

    model_config = ConfigDict(strict=True, extra="allow")

    sampling: Annotated[RatioSampling | CountSampling, Field(discriminator="type")] | None = None


Scorers = Annotated[dict[NonBlank, ScorerChoice], Field(max_length=MAX_REFERENCES), LimitKeys, null_resets_to(dict)]


class McpToolChoice(BaseModel):
    """A tool of an MCP server, with the agent's own description and rules for it."""

    model_config = ConfigDict(strict=True, extra="allow")

    description: Annotated[str, Field(max_length=20_000)] | None = None
    requireApproval: bool | None = None
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None


class McpServerChoice(BaseModel):
    """The tools of an MCP server that an agent uses. Without `tools`, all of them."""

    model_config = ConfigDict(strict=True, extra="allow")

    tools: Annotated[dict[Key, McpToolChoice], Field(max_length=MAX_REFERENCES), LimitKeys] | None = None


McpClients = Annotated[
    dict[Key, Annotated[McpServerChoice, BeforeValidator(reject_program_of_server)]],
    Field(max_length=MAX_REFERENCES),
    LimitKeys,
]


def _validate_search_filter(value: JSONObject | None) -> JSONObject | None:
    try:
        parse_filter(value, None)
    except FilterError as error:
        raise validation_error(str(error)) from None
    return value


class KnowledgeChoice(BaseModel):
    """A knowledge base that an agent searches, with a filter that the model cannot widen."""

    model_config = ConfigDict(strict=True, extra="allow")

    filter: Annotated[JSONObject, AfterValidator(_validate_search_filter)] | None = None
    topK: Annotated[int, Field(ge=1, le=20)] | None = None
    minScore: SimilarityScore | None = None


Knowledge = Annotated[dict[Key, KnowledgeChoice], Field(max_length=MAX_REFERENCES), LimitKeys]


_KeyOrOptions = Annotated[Key, Tag(KEY_TAG)] | Annotated[MemoryOptions, Tag(OBJECT_TAG)]
Memory = Annotated[_KeyOrOptions, choose_by(kind_of_memory, "the key of a memory, an object of options, or null")]
# A variant takes the place of a memory, and cannot remove it.
OtherMemory = Annotated[_KeyOrOptions, choose_by(kind_of_memory, "the key of a memory, or an object of options")]


# Classes of their own: pydantic names a parametrized model after its parameter, and clients generate classes of the
# names in the OpenAPI document.
class ModelVariant(Variant[ModelChoice]):
    """A model of an agent, with the rules that must hold for it."""


class MemoryVariant(Variant[OtherMemory]):
    """A memory of an agent, with the rules that must hold for it."""


class ToolsVariant(Variant[Keys]):
    """The tools of an agent, with the rules that must hold for them."""


class Conditional(BaseModel):
    """Variants of fields, of which the first whose rules hold for a call takes the place of the field."""

    # Not ignored: `apply_variants` replaces any field that is named here, also one that is not validated here.
    model_config = ConfigDict(strict=True, extra="forbid")

    model: Annotated[list[ModelVariant], Field(max_length=MAX_VARIANTS)] | None = None
    memory: Annotated[list[MemoryVariant], Field(max_length=MAX_VARIANTS)] | None = None
    tools: Annotated[list[ToolsVariant], Field(max_length=MAX_VARIANTS)] | None = None
