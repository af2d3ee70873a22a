"""References of an agent to registry entries and other agents, and the missing ones among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.acp_agents import acp_problem, find_acp_entry, is_acp_key
from agents_app.configuration.knowledge import (
    KNOWLEDGE,
    KNOWLEDGE_FILTERS,
    filter_references,
    find_base_problems,
)
from agents_app.configuration.mcp_clients import (
    ALL_TOOLS,
    MCP_CLIENTS,
    find_problem,
    find_same_names,
    selected_tools,
    split_reference,
)
from agents_app.configuration.memory.models import model_paths
from agents_app.configuration.variants import CONDITIONAL
from agents_app.registry import Entry, Kind, registry

MEMORY_MODELS = "memory.model"  # the models that a memory names

# The kind of entry that each field of a snapshot refers to, by wire name.
FIELD_KINDS = {
    "model": Kind.MODEL_PROVIDER,
    "tools": Kind.TOOL,
    "workflows": Kind.WORKFLOW,
    "agents": Kind.AGENT,
    "integrationTools": Kind.INTEGRATION_PROVIDER,
    "inputProcessors": Kind.PROCESSOR,
    "outputProcessors": Kind.PROCESSOR,
    "memory": Kind.MEMORY,
    MEMORY_MODELS: Kind.MODEL_PROVIDER,
    "scorers": Kind.SCORER,
    MCP_CLIENTS: Kind.MCP_TOOL,
    KNOWLEDGE: Kind.KNOWLEDGE,
    KNOWLEDGE_FILTERS: Kind.KNOWLEDGE,
}
# The same for the values of variants: `conditional.tools` has the tools that any variant of the tools names.
FIELDS_IN_VARIANTS = {f"{CONDITIONAL}.{field}": field for field in ("model", "tools", "memory", MEMORY_MODELS)}
FIELD_KINDS |= {variant_field: FIELD_KINDS[field] for variant_field, field in FIELDS_IN_VARIANTS.items()}
VARIANT_MODEL = f"{CONDITIONAL}.model"


# What staff and teams add, and only agents of the same owner may use.
OWNED_FIELDS = frozenset({MCP_CLIENTS, KNOWLEDGE, KNOWLEDGE_FILTERS})


class MissingReference(NamedTuple):
    """A reference of an agent to an entry that is not registered."""

    field: str
    key: str
    message: str

    @property
    def state(self) -> str:
        """Return why the entry is missing, in a word or two. The fields alone are part of answers of the API."""
        return "not registered"

    @property
    def is_fatal(self) -> bool:
        """Return whether the agent cannot answer without the entry."""
        return self.field == "model"

    @property
    def stops_answers(self) -> bool:
        """Return whether callers get no answer without the entry: all of them, or those of a variant."""
        return self.is_fatal or self.field == VARIANT_MODEL

    @property
    def text(self) -> str:
        """Return the message with what the missing entry means for the answers of the agent."""
        if self.is_fatal:
            return f"This agent cannot answer: {self.message[0].lower()}{self.message[1:]} Choose another model."
        if self.field == VARIANT_MODEL:
            return f"{self.message} The callers of a variant get no answer. Choose another model for the variant."
        return f"{self.message} The agent runs without it."


class ArchivedReference(MissingReference):
    """A reference of an agent to a sub-agent that is archived."""

    @property
    def state(self) -> str:
        """Return why the agent is missing, in a word."""
        return "archived"


def with_distinct_messages(missing: Iterable[MissingReference]) -> list[MissingReference]:
    """Return one reference for each message. All tools of a disabled server have the same one."""
    return [*{(reference.field, reference.message): reference for reference in missing}.values()]


class StoredAgents(NamedTuple):
    """The stored agents among the sub-agents of an agent. Those of other owners are not stored for it."""

    usable: Collection[str] = ()
    archived: Collection[str] = ()
    owner_id: str = ""


NO_AGENTS = StoredAgents()


def referenced_keys(snapshot: JSONMapping) -> dict[str, list[str]]:
    """Return the keys that a configuration refers to, by field, without fields that have none.

    The fields are wire names. Those of `FIELDS_IN_VARIANTS` have the keys of all variants, each once.
    """
    keys_by_field = keys_of_fields(snapshot)
    for _, values in variant_values(snapshot.get(CONDITIONAL)):
        for field, keys in keys_of_fields(values).items():
            known = keys_by_field.setdefault(f"{CONDITIONAL}.{field}", [])
            known += [key for key in dict.fromkeys(keys) if key not in known]
    return keys_by_field


def keys_of_fields(configuration: JSONMapping) -> dict[str, list[str]]:
    """Return the keys that a configuration refers to without its variants, by field."""
    keys_by_field = {field: _keys_of_field(field, configuration.get(field)) for field in FIELD_KINDS}
    keys_by_field[MEMORY_MODELS] = memory_providers(configuration.get("memory"))
    keys_by_field[KNOWLEDGE_FILTERS] = filter_references(configuration.get(KNOWLEDGE))
    return {field: keys for field, keys in keys_by_field.items() if keys}


def variant_values(conditional: object) -> Iterator[tuple[str, JSONObject]]:
    """Yield the path of each variant, and its value as a configuration that has only its field."""
    # Rows written by SQL or a fixture may not follow the schema.
    for field, variants in conditional.items() if isinstance(conditional, dict) else ():
        for index, variant in enumerate(variants if isinstance(variants, list) else ()):
            if isinstance(variant, dict):
                yield f"{CONDITIONAL}.{field}[{index}].value", {field: variant.get("value")}


def _keys_of_field(field: str, value: JSONValue) -> list[str]:
    if not value:
        return []
    if field == "model":
        keys = [value.get("provider") if isinstance(value, dict) else None]
    elif field == "memory":
        keys = [value]
    elif field == MCP_CLIENTS:
        keys = [tool.reference for tool in selected_tools(value)]
    elif field in {"inputProcessors", "outputProcessors"}:
        keys = [processor_key(processor) for processor in value if isinstance(processor, dict)]
    else:
        keys = list(value) if isinstance(value, list | dict) else []  # a list of keys, or scorers by key
    return [key for key in keys if isinstance(key, str)]  # rows written by SQL or a fixture may not follow the schema


def memory_providers(memory: object) -> list[str]:
    """Return the providers of the models that a memory names."""
    return [*dict.fromkeys(provider for _, provider in model_paths(memory))]


def processor_key(processor: JSONMapping) -> object:
    """Return the registry key of a configured processor. It is not a text if the processor was never validated."""
    return processor.get("key", processor.get("id"))


def find_entry(kind: Kind, key: str) -> Entry | None:
    """Return the entry that a field of this kind names: one in code, or an ACP agent. Return None for any other."""
    return find_code_entry(kind, key) or find_acp_entry(kind, key)


def find_code_entry(kind: Kind, key: str) -> Entry | None:
    """Return the entry in code for a key, or None. An integration tool resolves to its provider's entry."""
    if kind is not Kind.INTEGRATION_PROVIDER:
        return registry.get(kind, key)
    provider, _, tool = key.partition("_")
    entry = registry.get(kind, provider)
    return entry if entry is not None and tool in entry.names else None


def reference_path(field: str, key: str, snapshot: JSONMapping) -> str:
    """Return the path of a key in a configuration: `tools[2]`, `model.provider`, `scorers.tone`."""
    if field in FIELDS_IN_VARIANTS:
        return _path_in_variants(FIELDS_IN_VARIANTS[field], key, snapshot)
    value = snapshot.get(field)
    if field == "model":
        return "model.provider"
    if field == MEMORY_MODELS:
        return next(f"memory.{path}" for path, provider in model_paths(snapshot.get("memory")) if provider == key)
    if field == MCP_CLIENTS:
        server, _, name = key.partition("_")
        return f"{field}.{server}.tools.{name}" if name != ALL_TOOLS else f"{field}.{server}"
    if not isinstance(value, list):
        return field if field == "memory" else f"{field}.{key}"
    keys = [processor_key(item) if isinstance(item, dict) else item for item in value]
    return f"{field}[{keys.index(key)}]"


def _path_in_variants(field: str, key: str, snapshot: JSONMapping) -> str:
    """Return the path of a key in the first variant that names it: `conditional.tools[0].value[1]`."""
    path, values = next(
        (path, values)
        for path, values in variant_values(snapshot.get(CONDITIONAL))
        if key in keys_of_fields(values).get(field, ())
    )
    inner = reference_path(field, key, values)
    return path + inner.removeprefix(field.partition(".")[0])


def reload_missing_entries(references: Mapping[str, Iterable[str]]) -> None:
    """Read again what staff and teams added if references name something else. Takes a query for each such kind.

    A process reads these tables once a second. What another one stored just now is not missing where an agent is saved
    or run.
    """
    added: dict[Kind, set[str]] = {}
    for field, keys in references.items():
        kind = FIELD_KINDS[field]
        for key in keys if field != KNOWLEDGE_FILTERS else ():  # the bases are among the keys of another field
            if find_code_entry(kind, key) is None:
                name = split_reference(key)[0] if field == MCP_CLIENTS else key
                added.setdefault(Kind.ACP_AGENT if is_acp_key(kind, key) else kind, set()).add(name)
    for kind, names in added.items():
        registry.reload_if_missing(kind, names)


def find_missing_references(
    references: Mapping[str, Iterable[str]], stored: StoredAgents = NO_AGENTS
) -> list[MissingReference]:
    """Return a warning for each key that is neither registered in code nor added by staff.

    `stored` are the agents of the owner and the shared ones. An agent or a scorer of another owner gets the same
    warning as one that does not exist.
    """
    selected = [*references.get(MCP_CLIENTS, ())]
    others = {field: keys for field, keys in references.items() if field not in OWNED_FIELDS}
    unregistered = find_unregistered_references(others, stored)
    checked = (_with_staff_entry(warning, stored.owner_id) for warning in unregistered)
    missing = [warning for warning in checked if warning is not None]
    problems = ((reference, find_problem(reference, stored.owner_id)) for reference in selected)
    missing += [
        MissingReference(MCP_CLIENTS, split_reference(reference)[0], problem)
        for reference, problem in problems
        if problem
    ]
    same_names = find_same_names(selected, stored.owner_id)
    missing += [MissingReference(MCP_CLIENTS, key, message) for key, message in same_names.items()]
    bases = find_base_problems(references, stored.owner_id)
    return missing + [MissingReference(KNOWLEDGE, key, problem) for key, problem in bases]


def _with_staff_entry(warning: MissingReference, owner_id: str) -> MissingReference | None:
    """Return the warning about a key that no code registers, or None if staff or the owner added a usable entry.

    An entry of another owner gets the same warning as one that does not exist.
    """
    kind = FIELD_KINDS[warning.field]
    if problem := acp_problem(kind, warning.key):
        return warning._replace(message=problem)
    entry = registry.find_staff_entry(kind, warning.key) or find_acp_entry(kind, warning.key)
    return None if entry is not None and entry.is_usable_by(owner_id) else warning


def find_unregistered_references(
    references: Mapping[str, Iterable[str]], stored: StoredAgents
) -> list[MissingReference]:
    """Return a warning for each key that is not registered in code, regardless of entries added by staff."""
    usable, archived = set(stored.usable), set(stored.archived)
    return [
        _missing_reference(field, key, archived)
        for field, keys in references.items()
        for key in keys
        if find_code_entry(FIELD_KINDS[field], key) is None and not (field == "agents" and key in usable)
    ]


def missing_reference_message(field: str, key: str, archived_agents: Collection[str] = ()) -> str:
    """Return the sentence of a warning about a reference."""
    return _missing_reference(field, key, archived_agents).message


def _missing_reference(field: str, key: str, archived_agents: Collection[str]) -> MissingReference:
    """Return the warning about a reference to an entry that is not registered in code."""
    if field == "agents" and key in archived_agents:
        return ArchivedReference(field, key, f"The agent '{key}' is archived.")
    return MissingReference(field, key, f"No {FIELD_KINDS[field].value} is registered as '{key}'.")
