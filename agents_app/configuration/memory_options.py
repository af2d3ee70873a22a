"""The memory of an agent: the key of a registered memory, or an object of options.

    {"options": {"lastMessages": 10, "workingMemory": {"scope": "resource", "template": "# Person"}}}

A part of the options is off if it is absent or `false`, and has its defaults if it is `true`. `vector` and members
that are not listed here are stored and have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from agentcms.wire.json_schema import reject_invalid_schema
from agentcms.wire.names import to_wire
from agents_app.configuration.fields.types import validation_error

DEFAULT_EMBEDDER = "local/multilingual"
LOCAL_EMBEDDERS = "local"  # the provider of embedders that run in this process
MAX_LAST_MESSAGES = 1000
MAX_TOP_K = 100
MAX_MESSAGE_RANGE = 10
MAX_TEXT_LENGTH = 32_768  # of a template, of a JSON Schema as text, and of instructions
RESOURCE_SCOPE_MESSAGE = "Observations are made by thread. The scope 'resource' has no effect."
VECTOR_MESSAGE = "Vectors are in the database of this application. 'vector' has no effect."

# Names of the alternatives of a union. They are no part of the path of an error.
KEY_TAG, OBJECT_TAG, FLAG_TAG = "[key of a memory]", "[options of a memory]", "[on or off]"
UNION_TAGS = frozenset({KEY_TAG, OBJECT_TAG, FLAG_TAG})


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _validate_model(value: Any) -> Any:
    if isinstance(value, str):
        provider, separator, name = value.partition("/")
        if separator and _is_name(provider) and _is_name(name):
            return value
    elif (
        isinstance(value, dict) and _is_name(value.get("provider")) and _is_name(value.get("name"))
    ) or value is None:
        return value
    raise validation_error('Name a model as "provider/name", or as an object with provider and name.')


def _validate_last_messages(value: Any) -> Any:
    if value is False or value is None or (type(value) is int and 0 <= value <= MAX_LAST_MESSAGES):
        return value
    raise validation_error(f"This must be a whole number from 0 to {MAX_LAST_MESSAGES:,}, or false for no messages.")


def _validate_message_range(value: Any) -> Any:
    counts = [value.get("before", 0), value.get("after", 0)] if isinstance(value, dict) else [value]
    if value is None or all(type(count) is int and 0 <= count <= MAX_MESSAGE_RANGE for count in counts):
        return value
    raise validation_error(
        f"This must be a whole number from 0 to {MAX_MESSAGE_RANGE}, or an object with before and after."
    )


def _validate_buffer_tokens(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is False or value is None or (is_number and (0 < value <= 1 or (value == int(value) and value > 1))):
        return value
    raise validation_error("This must be a share of messageTokens from 0 to 1, a number of tokens, or false.")


def _validate_schema(value: Any) -> Any:
    if value is None:
        return value
    if not isinstance(value, dict) or value.get("type", "object") != "object":
        raise validation_error("This must be a JSON Schema of the type object.")
    if len(str(value)) > MAX_TEXT_LENGTH:
        raise validation_error(f"This must not exceed {MAX_TEXT_LENGTH:,} characters.")
    try:
        reject_invalid_schema(value)
    except ValueError as error:
        raise validation_error(f"This is not a JSON Schema: {error}") from None
    return value


_MODEL_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": ".+/.+"},
        {
            "type": "object",
            "properties": {"provider": {"type": "string"}, "name": {"type": "string"}},
            "required": ["provider", "name"],
        },
        {"type": "null"},
    ],
    "default": None,
}
_COUNT_OR_FALSE = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_LAST_MESSAGES}, {"const": False}]}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": MAX_MESSAGE_RANGE}
_RANGE_SCHEMA = {"anyOf": [_COUNT, {"type": "object", "properties": {"before": _COUNT, "after": _COUNT}}]}
_BUFFER_SCHEMA = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": False}]}

NamedModel = Annotated[Any, AfterValidator(_validate_model), WithJsonSchema(_MODEL_SCHEMA)]
LongText = Annotated[str, Field(max_length=MAX_TEXT_LENGTH)]
Scope = Literal["resource", "thread"]


class _Options(BaseModel):
    """Options under wire names. Members that are not listed are stored and have no effect."""

    model_config = ConfigDict(strict=True, extra="allow", alias_generator=to_wire)


def _kind_of_part(value: Any) -> str:
    """Return the alternative of a part of the options: an object, or on or off."""
    return OBJECT_TAG if isinstance(value, dict | BaseModel) else FLAG_TAG


def _validate_flag(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    raise validation_error("This must be true, false or an object.")


Flag = Annotated[Any, AfterValidator(_validate_flag), WithJsonSchema({"type": "boolean"}), Tag(FLAG_TAG)]


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
    message_range: Annotated[Any, AfterValidator(_validate_message_range), WithJsonSchema(_RANGE_SCHEMA)] = 1
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
    json_schema: Annotated[
        Any,
        AfterValidator(_validate_schema),
        Field(alias="schema"),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}], "default": None}),
    ] = None

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
    buffer_tokens: Annotated[Any, AfterValidator(_validate_buffer_tokens), WithJsonSchema(_BUFFER_SCHEMA)] = 0.2
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

    last_messages: Annotated[Any, AfterValidator(_validate_last_messages), WithJsonSchema(_COUNT_OR_FALSE)] = 10
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
    vector: Any = None  # where the published protocol stores vectors; here they are in the database
    observational_memory: Annotated[
        Flag | Annotated[ObservationalOptions, Tag(OBJECT_TAG)], Discriminator(_kind_of_part)
    ] = False

    @model_validator(mode="before")
    @classmethod
    def reject_empty(cls, value: Any) -> Any:
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


def parse_memory_options(memory: Any) -> MemoryOptions | None:
    """Return the options of a stored memory, or None for a registered one and for a row that was never validated."""
    if not isinstance(memory, dict):
        return None
    try:
        return MemoryOptions.model_validate(memory)
    except ValidationError:
        return None


def kind_of_memory(value: Any) -> str:
    """Return the alternative of a memory: the key of a registered one, or options."""
    return OBJECT_TAG if isinstance(value, dict | BaseModel) else KEY_TAG


def options_without_effect(memory: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and a message of each known option that is stored and has no effect."""
    if not isinstance(memory, dict):
        return
    observational = memory.get("observationalMemory")
    if isinstance(observational, dict) and observational.get("scope") == "resource":
        yield "observationalMemory.scope", RESOURCE_SCOPE_MESSAGE
    if memory.get("vector"):
        yield "vector", VECTOR_MESSAGE


# --- Names of models


def model_paths(memory: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and the provider of each model that a stored memory names."""
    options = parse_memory_options(memory)
    if options is None:
        return
    choices: dict[str, Any] = {"embedder": options.embedder}
    if options.title:
        choices["options.generateTitle.model"] = options.title.model
    if observational := options.observational:
        choices["observationalMemory.model"] = observational.model
        choices["observationalMemory.observation.model"] = observational.observation.model
        choices["observationalMemory.reflection.model"] = observational.reflection.model
    for path, choice in choices.items():
        provider = provider_of(choice)
        if provider and provider != LOCAL_EMBEDDERS:
            yield path, provider


def provider_of(choice: Any) -> str:
    """Return the provider of a model that is named as a text or an object, or a blank text."""
    if isinstance(choice, dict):
        return str(choice.get("provider") or "")
    return choice.partition("/")[0] if isinstance(choice, str) and "/" in choice else ""


def model_choice(choice: Any, fallback: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a model as an object with provider and name. Without a choice, the fallback."""
    if isinstance(choice, str):
        provider, _, name = choice.partition("/")
        return {"provider": provider, "name": name}
    return choice or fallback


# The models of the objects in a memory, by path.
PARTS: dict[str, type[_Options]] = {
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
