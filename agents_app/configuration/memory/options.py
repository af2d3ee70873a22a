"""The memory of an agent: the key of a registered memory, or an object of options.

    {"options": {"lastMessages": 10, "workingMemory": {"scope": "resource", "template": "# Person"}}}

A part of the options is off if it is absent or `false`, and has its defaults if it is `true`. `vector` and members
that are not listed here are stored and have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from agentcms.vectors import UnknownEmbedder, find_embedder
from agentcms.wire.json_types import JSONValue
from agentcms.wire.names import to_wire
from agents_app.configuration.fields.types import validation_error
from agents_app.configuration.memory.values import (
    FLAG_TAG,
    KEY_TAG,
    MAX_LAST_MESSAGES,
    OBJECT_TAG,
    BufferTokens,
    Flag,
    LongText,
    MessageCount,
    MessageRange,
    NamedModel,
    ObjectSchema,
    Scope,
)

DEFAULT_EMBEDDER = "local/multilingual"
LOCAL_EMBEDDERS = "local"  # the provider of embedders that run in this process
MAX_TOP_K = 100
OBSERVATIONAL_MEMORY = "observationalMemory"
RESOURCE_SCOPE_MESSAGE = "Observations are made by thread. The scope 'resource' has no effect."
MISPLACED_MESSAGE = "Observations belong next to 'options'. Send memory.observationalMemory instead."
VECTOR_MESSAGE = "Vectors are in the database of this application. 'vector' has no effect."


class _Options(BaseModel):
    """Options under wire names. Members that are not listed are stored and have no effect."""

    model_config = ConfigDict(strict=True, extra="allow", alias_generator=to_wire)


def _kind_of_part(value: object) -> str:
    """Return the alternative of a part of the options: an object, or on or off."""
    return OBJECT_TAG if isinstance(value, dict | BaseModel) else FLAG_TAG


Part = TypeVar("Part", bound=_Options)


class MessageHistory(_Options):
    """A further limit of the last messages."""

    max_tokens: Annotated[int, Field(ge=1)] = 8000


class TitleOptions(_Options):
    """The title of a thread, which a model writes after the first answer."""

    min_messages: Annotated[int, Field(ge=1, le=MAX_LAST_MESSAGES)] = 1
    model: NamedModel = None  # None: that of the agent
    instructions: LongText | None = None


class RecallOptions(_Options):
    """Earlier messages that are similar to those of the user."""

    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] = 4
    message_range: MessageRange = 1
    scope: Scope = "resource"
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None

    @property
    def neighbours(self) -> tuple[int, int]:
        """The numbers of messages before and after each recalled one."""
        if isinstance(self.message_range, dict):
            return self.message_range.get("before", 0), self.message_range.get("after", 0)
        return self.message_range or 0, self.message_range or 0


class WorkingMemoryOptions(_Options):
    """Notes of the agent about a resource or a thread: a text after a template, or an object after a schema."""

    enabled: bool = True
    scope: Scope = "resource"
    template: LongText | None = None
    # `schema` is a method of pydantic's models.
    json_schema: Annotated[ObjectSchema, Field(alias="schema")] = None

    @model_validator(mode="after")
    def reject_two_formats(self) -> WorkingMemoryOptions:
        if self.template is not None and self.json_schema is not None:
            raise validation_error("Give a template or a schema, not both.")
        return self


class ObservationOptions(_Options):
    """Thresholds at which messages of a thread become observations."""

    model: NamedModel = None
    instruction: LongText | None = None
    message_tokens: Annotated[int, Field(ge=1)] = 30_000
    buffer_tokens: BufferTokens = 0.2
    buffer_activation: Annotated[float, Field(gt=0, le=1)] = 0.8
    block_after: Annotated[float, Field(ge=1)] = 1.2


class ReflectionOptions(_Options):
    """Thresholds at which observations are condensed further."""

    model: NamedModel = None
    instruction: LongText | None = None
    observation_tokens: Annotated[int, Field(ge=1)] = 40_000


class ObservationalOptions(_Options):
    """Observations of a thread in place of its older messages."""

    enabled: bool = True
    scope: Scope = "thread"
    model: NamedModel = None
    observation: ObservationOptions = Field(default_factory=ObservationOptions)
    reflection: ReflectionOptions = Field(default_factory=ReflectionOptions)


class MemoryParts(_Options):
    """The member `options` of a memory."""

    last_messages: MessageCount = 10
    message_history: Annotated[Flag | Annotated[MessageHistory, Tag(OBJECT_TAG)], Discriminator(_kind_of_part)] = True
    read_only: bool = False
    generate_title: Annotated[Flag | Annotated[TitleOptions, Tag(OBJECT_TAG)], Discriminator(_kind_of_part)] = False
    semantic_recall: Annotated[Flag | Annotated[RecallOptions, Tag(OBJECT_TAG)], Discriminator(_kind_of_part)] = False
    working_memory: Annotated[
        Flag | Annotated[WorkingMemoryOptions, Tag(OBJECT_TAG)], Discriminator(_kind_of_part)
    ] = False


class MemoryOptions(_Options):
    """A memory as an object of options."""

    options: MemoryParts = Field(default_factory=MemoryParts)
    embedder: LongText | None = None
    vector: JSONValue = None  # where the published protocol stores vectors; here they are in the database
    observational_memory: Annotated[
        Flag | Annotated[ObservationalOptions, Tag(OBJECT_TAG)], Discriminator(_kind_of_part)
    ] = False

    @model_validator(mode="before")
    @classmethod
    def reject_empty(cls, value: JSONValue) -> JSONValue:
        if value == {}:
            raise validation_error('This is empty. Send {"options": {}} for the defaults, or null for no memory.')
        return value

    # --- the parts with their defaults, or None if they are off

    @property
    def max_messages(self) -> int:
        """The number of messages of the thread that the model gets."""
        value = self.options.last_messages
        return 10 if value is None else int(value)

    @property
    def max_tokens(self) -> int | None:
        """The number of tokens that these messages may have together, or None for any number."""
        history = _part(self.options.message_history, MessageHistory)
        return history.max_tokens if history else None

    @property
    def title(self) -> TitleOptions | None:
        return _part(self.options.generate_title, TitleOptions)

    @property
    def recall(self) -> RecallOptions | None:
        return _part(self.options.semantic_recall, RecallOptions)

    @property
    def working(self) -> WorkingMemoryOptions | None:
        return _part(self.options.working_memory, WorkingMemoryOptions)

    @property
    def observational(self) -> ObservationalOptions | None:
        return _part(self.observational_memory, ObservationalOptions)


def _part(value: bool | Part | None, kind: type[Part]) -> Part | None:
    if value is None or isinstance(value, bool):
        return kind() if value else None
    return value if getattr(value, "enabled", True) else None


def parse_memory_options(memory: object) -> MemoryOptions | None:
    """Return the options of a stored memory, or None for a registered one and for a row that was never validated."""
    if not isinstance(memory, dict):
        return None
    try:
        return MemoryOptions.model_validate(memory)
    except ValidationError:
        return None


def kind_of_memory(value: object) -> str | None:
    """Return the alternative of a memory: the key of a registered one, or options. None for any other value."""
    if isinstance(value, str):
        return KEY_TAG
    return OBJECT_TAG if isinstance(value, dict | BaseModel) else None


def options_without_effect(memory: object) -> Iterator[tuple[str, str]]:
    """Yield the path and a message of each known option that is stored and has no effect."""
    if not isinstance(memory, dict):
        return
    observational = memory.get(OBSERVATIONAL_MEMORY)
    if isinstance(observational, dict) and observational.get("scope") == "resource":
        yield "observationalMemory.scope", RESOURCE_SCOPE_MESSAGE
    options = memory.get("options")
    if isinstance(options, dict) and OBSERVATIONAL_MEMORY in options:
        yield f"options.{OBSERVATIONAL_MEMORY}", MISPLACED_MESSAGE
    if memory.get("vector"):
        yield "vector", VECTOR_MESSAGE
    name = memory.get("embedder")
    if isinstance(name, str) and name and (message := embedder_problem(name)):
        yield "embedder", message


def embedder_problem(name: str) -> str:
    """Return why an embedder of this process cannot be used, or a blank text. Those of providers are references."""
    provider, slash, _ = name.partition("/")
    if slash and provider != LOCAL_EMBEDDERS:
        return ""
    try:
        find_embedder(name)
    except UnknownEmbedder as error:
        return str(error)
    return ""


# The models of the objects in a memory, by path.
PART_MODELS: dict[str, type[_Options]] = {
    "": MemoryOptions,
    "options": MemoryParts,
    "options.messageHistory": MessageHistory,
    "options.generateTitle": TitleOptions,
    "options.semanticRecall": RecallOptions,
    "options.workingMemory": WorkingMemoryOptions,
    "observationalMemory": ObservationalOptions,
    "observationalMemory.observation": ObservationOptions,
    "observationalMemory.reflection": ReflectionOptions,
}
