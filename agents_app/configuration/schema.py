"""The schema of an agent's configuration: one pydantic model for the API, forms, admin, import and `Agent.clean()`.

Wire names are camelCase. The contents of `model`, `metadata`, `defaultOptions`, processors and scorers belong to the
caller and are stored unchanged. Values are never trimmed or coerced to another type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic import ValidationError as PydanticValidationError

from agentcms.lookalike_ids import describe_ambiguity
from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.names import to_python, to_wire
from agentcms.wire.validation import (
    MAX_INTEGER,
    NOT_A_TEXT_MESSAGE,
    NOT_AN_OBJECT_MESSAGE,
    TOO_BIG_MESSAGE,
    find_json_faults,
)
from agents_app.configuration.background_tasks import BACKGROUND_TAGS, BackgroundTasks
from agents_app.configuration.fields.choices import Conditional, Knowledge, McpClients, Memory, ModelChoice, Scorers
from agents_app.configuration.fields.programs import COMMAND_NOT_ALLOWED
from agents_app.configuration.fields.types import (
    MAX_REFERENCES,
    AgentId,
    Durable,
    Keys,
    Name,
    NewAgentId,
    Object,
    Objects,
    OwnerId,
    Text,
)
from agents_app.configuration.memory.values import UNION_TAGS
from agents_app.configuration.variables import RequestContextSchema

SAMPLING_TYPES = {"ratio", "count"}
ALTERNATIVES = UNION_TAGS | BACKGROUND_TAGS


class Issue(NamedTuple):
    """A validation error at a path in wire names."""

    field: str
    message: str


class CommandIssue(Issue):
    """A program that is named where only the operator may name one."""

    __slots__ = ()


class ConfigError(ValidationError):
    """All validation errors of an agent's configuration.

    The `ValidationError` is keyed by Python field name, so forms show each message at its field. `issues` has wire
    paths.
    """

    def __init__(self, issues: Iterable[Issue]) -> None:
        self.issues = list(issues)
        by_field: dict[str, list[ValidationError]] = {}
        for issue in self.issues:
            field, message = issue
            head, _, inner = field.partition(".")
            head, bracket, index = head.partition("[")
            inner = f"{bracket}{index}{'.' if index and inner else ''}{inner}"
            name = to_python(head) or NON_FIELD_ERRORS
            # Without a code otherwise: a form replaces the message of a code that its field knows.
            code = COMMAND_NOT_ALLOWED if isinstance(issue, CommandIssue) else None
            text = f"{inner}: {message}" if inner else message
            by_field.setdefault(name, []).append(ValidationError(text, code=code))
        super().__init__(by_field)

    @property
    def issue_code(self) -> str:
        """The code of an issue that callers tell apart from others, or a blank text."""
        return COMMAND_NOT_ALLOWED if any(isinstance(issue, CommandIssue) for issue in self.issues) else ""


@contextmanager
def collecting_issues(issues: list[Issue]) -> Iterator[None]:
    """Collect the issues raised inside, so that one response lists those of all parts of an input."""
    try:
        yield
    except ConfigError as error:
        issues += error.issues


# Unknown names are ignored here: requests report them as warnings, or refuse them if they are strict.
WIRE_CONFIG = ConfigDict(
    strict=True, extra="ignore", alias_generator=to_wire, validate_by_name=False, validate_by_alias=True
)


class AgentConfig(BaseModel):
    """The configuration of an agent, as stored in a snapshot."""

    model_config = WIRE_CONFIG

    name: Name
    description: Text = ""
    instructions: str
    request_context_schema: RequestContextSchema | None = None
    model: ModelChoice
    tools: Keys = Field(default_factory=list)
    default_options: Object = Field(default_factory=dict)
    durable: Durable = None
    workflows: Keys = Field(default_factory=list)
    agents: Keys = Field(default_factory=list)
    integration_tools: Keys = Field(default_factory=list)
    mcp_clients: McpClients | None = None
    background_tasks: BackgroundTasks | None = None
    knowledge: Knowledge | None = None
    input_processors: Objects = Field(default_factory=list)
    output_processors: Objects = Field(default_factory=list)
    memory: Memory | None = None
    conditional: Conditional | None = None
    context_keys: Keys | None = None
    scorers: Scorers = Field(default_factory=dict)
    metadata: Object = Field(default_factory=dict)


FIELDS: tuple[str, ...] = tuple(AgentConfig.model_fields)
WIRE_NAMES: dict[str, str] = {name: to_wire(name) for name in FIELDS}
# Fields that earlier releases do not have, null if they are not set. A snapshot has them only if they are set, so that
# equal configurations have equal snapshots, whichever release wrote them.
ADDED_FIELDS = frozenset(
    {
        *("background_tasks", "conditional", "context_keys", "durable"),
        *("knowledge", "mcp_clients", "request_context_schema"),
    }
)
_ADDED_WIRE_NAMES = frozenset(WIRE_NAMES[name] for name in ADDED_FIELDS)


class AgentCreate(AgentConfig):
    """The body that creates an agent: its configuration, ID and owner."""

    id: AgentId
    owner_id: OwnerId | None = None


class NewAgent(AgentCreate):
    """The body of an agent that does not exist yet. Its ID must not look like another one."""

    id: NewAgentId


@cache
def as_partial(model: type[BaseModel]) -> type[BaseModel]:
    """Return a model with the same fields and rules, none of them required."""
    fields: Any = {}
    for name, info in model.model_fields.items():
        optional = copy(info)
        # These values are never used: only the fields that a body has are returned.
        optional.default, optional.default_factory = None, None
        fields[name] = (info.annotation, optional)
    return create_model(f"{model.__name__}Change", __config__=model.model_config, **fields)


def defaults() -> JSONObject:
    """Return the default values of the optional fields, by Python name."""
    return {name: factory() for name, factory in _DEFAULT_FACTORIES.items()}


# Built once: pydantic inspects a factory each time it is called.
_DEFAULT_FACTORIES: dict[str, Callable[[], Any]] = {
    name: cast(Callable[[], Any], info.default_factory or repeat(info.default).__next__)
    for name, info in AgentConfig.model_fields.items()
    if not info.is_required()
}


def validate_partial(body: object) -> JSONObject:
    """Return the configuration fields in a body, by Python name. A null resets a field. Raise ConfigError."""
    return validate_fields(as_partial(AgentConfig), body)


def validate_config(body: object) -> JSONObject:
    """Return the whole configuration in a body, by Python name. Raise ConfigError."""
    return {**defaults(), **validate_fields(AgentConfig, body)}


def reject_ambiguous_id(agent_id: str) -> None:
    """Raise ConfigError if the ID of a new agent looks like another one. Existing agents keep the IDs they have."""
    if message := describe_ambiguity(agent_id):
        raise ConfigError([Issue("id", message)])


def validate_agent(body: object) -> JSONObject:
    """Return the whole configuration of an agent with `id` and `owner_id`, None if not sent. Raise ConfigError.

    The agent may exist: an ID that only a new agent must not have is valid.
    """
    return {**defaults(), "owner_id": None, **validate_fields(AgentCreate, body)}


def to_wire_dict(fields: JSONMapping) -> JSONObject:
    """Return the configuration under its wire names."""
    return {wire: fields[name] for name, wire in WIRE_NAMES.items() if name in fields}


def to_snapshot(fields: JSONMapping, base: JSONMapping = MappingProxyType({})) -> JSONObject:
    """Return a configuration as a snapshot stores it: the fields over those of a base, which is a snapshot."""
    wire = {**base, **to_wire_dict(fields)}
    return {name: value for name, value in wire.items() if value is not None or name not in _ADDED_WIRE_NAMES}


def from_snapshot(snapshot: JSONMapping) -> JSONObject:
    """Return the whole configuration of a snapshot, by Python name."""
    return {name: snapshot.get(wire) if name in ADDED_FIELDS else snapshot[wire] for name, wire in WIRE_NAMES.items()}


def validate_fields(model: type[BaseModel], body: object) -> JSONObject:
    """Return the fields of a model that are in a body, by Python name and unchanged. Raise ConfigError."""
    if not isinstance(body, dict):
        raise ConfigError([Issue("", "Send a JSON object.")])
    named = {name: body[to_wire(name)] for name in model.model_fields if to_wire(name) in body}
    issues = [Issue(*fault) for name, value in named.items() for fault in find_json_faults(value, to_wire(name))]
    if issues:  # such values could crash the model's validators
        raise ConfigError(issues)
    try:
        validated = model.model_validate(body)
    except PydanticValidationError as error:
        raise ConfigError(map(_issue, error.errors())) from None
    # Values are stored as sent, not as the model parsed them; only a null becomes the field's default.
    return {name: getattr(validated, name) if value is None else value for name, value in named.items()}


def _issue(error: Any) -> Issue:
    kind = CommandIssue if error["type"] == COMMAND_NOT_ALLOWED else Issue
    return kind(_path(error["loc"]), _error_message(error))


def _path(location: tuple[int | str, ...]) -> str:
    """Format a pydantic location as a wire path: `scorers.tone.sampling.rate`, `tools[2]`."""
    path = ""
    for parent, part in zip(("", *location), location, strict=False):
        # These are added by pydantic.
        if part == "[key]" or part in ALTERNATIVES or (parent == "sampling" and part in SAMPLING_TYPES):
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


ERROR_MESSAGES = {
    "missing": "This is required.",
    "string_type": NOT_A_TEXT_MESSAGE,
    "list_type": "This must be a list.",
    "dict_type": NOT_AN_OBJECT_MESSAGE,
    "model_type": NOT_AN_OBJECT_MESSAGE,
    "model_attributes_type": NOT_AN_OBJECT_MESSAGE,
    "bool_type": "This must be true or false.",
    "int_type": "This must be a whole number.",
    "extra_forbidden": "This name is unknown. Leave it out.",
    "float_type": "This must be a number.",
    "union_tag_not_found": 'This needs a type: "ratio" or "count".',
    "union_tag_invalid": 'The type must be "ratio" or "count".',
}

_SUBJECT = re.compile(r"(?:Input|String|List|Dictionary) should ")


def _error_message(error: Any) -> str:
    if error["type"] == "int_type" and isinstance(error["input"], float) and abs(error["input"]) > MAX_INTEGER:
        return TOO_BIG_MESSAGE  # the parser returns a whole number of this size as a double
    if error["type"] == "too_long":  # of a custom error without a context, too
        return f"List at most {pluralize(error.get('ctx', {}).get('max_length', MAX_REFERENCES), 'item')}."
    if error["type"] == "too_short":
        return f"List at least {pluralize(error['ctx']['min_length'], 'item')}."
    # The path of an issue names the value, so a message need not name its type, as pydantic does.
    message = ERROR_MESSAGES.get(error["type"]) or _SUBJECT.sub("This must ", error["msg"])
    return message if message.endswith(".") else f"{message}."
