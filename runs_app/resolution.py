"""Resolution of an agent to the configuration that runs: live, draft, a version, unsaved text, or code."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, overload
from uuid import UUID

from cachetools import LRUCache
from django.core.exceptions import ValidationError

from access_app.caller import Caller
from access_app.permissions import SHARED_OWNER
from agentcms.cache import SizeLimitedCache
from agentcms.tracing import spans
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.acp_agents import find_acp_entry, names_acp_agent
from agents_app.configuration.references import (
    FIELD_KINDS,
    OWNED_FIELDS,
    MissingReference,
    StoredAgents,
    find_entry,
    find_missing_references,
    keys_of_fields,
    reload_missing_entries,
)
from agents_app.configuration.schema import to_wire_dict
from agents_app.editing.archive_guard import reject_archived
from agents_app.models import Agent, AgentQuerySet
from agents_app.registry import Entry, Kind, registry
from runs_app.frequent_queries import agent_to_run
from runs_app.models import AgentRun
from runs_app.providers import cached_providers
from versions_app.models import AgentVersion

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent

Target = AgentRun.Target
MAX_BUILT_AGENTS = 256  # per process

_built_agents: SizeLimitedCache[Hashable, BuiltAgent] = SizeLimitedCache(LRUCache(MAX_BUILT_AGENTS))

POINTER_BY_STATUS = {"published": ("active_version", Target.LIVE), "draft": ("head_version", Target.DRAFT)}


class SubAgents(NamedTuple):
    """The stored sub-agents of an agent: the ids of the live versions by key, and the keys of archived ones."""

    live_ids: Mapping[str, UUID]
    archived: tuple[str, ...]

    @property
    def items(self) -> tuple[Hashable, ...]:
        return (*self.live_ids.items(), *self.archived)


@dataclass(frozen=True)
class ResolvedAgent:
    """An agent with one of its configurations, ready to be built and run."""

    id: str
    name: str
    description: str
    owner_id: str
    configuration: JSONMapping  # under wire names
    source: str  # "stored" or "code"
    target: str  # of AgentRun.Target
    version_id: UUID | None = None
    version_number: int | None = None
    variants: tuple[tuple[str, int], ...] = ()  # the chosen ones, which the configuration has

    @classmethod
    def from_version(cls, agent: Agent, target: Target, version: AgentVersion) -> ResolvedAgent:
        return cls._from_agent(agent, target, version.snapshot, version.pk, version.version_number)

    @classmethod
    def unsaved(cls, agent: Agent, configuration: JSONMapping) -> ResolvedAgent:
        """Return the agent with the unsaved text of an editor. Raise AgentArchived."""
        reject_archived(agent)
        return cls._from_agent(agent, Target.UNSAVED, configuration)

    @classmethod
    def from_registry(cls, entry: Entry) -> ResolvedAgent:
        # An ACP agent is built from its record, whatever it is then.
        model = {"provider": "acp", "name": str(entry.target)}
        acp = {"name": entry.title, "description": entry.description, "instructions": "", "model": model}
        snapshot = acp if entry.make_agent is not None else to_wire_dict(entry.target)
        return cls(entry.key, entry.title, entry.description, SHARED_OWNER, snapshot, "code", Target.CODE)

    @classmethod
    def from_run(cls, run: AgentRun) -> ResolvedAgent:
        """Return the agent with the configuration that a run stores."""
        snapshot = run.configuration
        source = "code" if run.target == Target.CODE else "stored"
        name, description = snapshot.get("name", ""), snapshot.get("description", "")
        version = (run.version_id, run.version_number)
        variants = tuple(sorted((run.input.get("variants") or {}).items()))
        owner_id = run.agent_owner_id or ""
        return cls(run.agent_key, name, description, owner_id, snapshot, source, run.target, *version, variants)

    @classmethod
    def _from_agent(
        cls,
        agent: Agent,
        target: Target,
        snapshot: JSONMapping,
        version_id: UUID | None = None,
        version_number: int | None = None,
    ) -> ResolvedAgent:
        name, description = snapshot.get("name", agent.name), snapshot.get("description", "")
        return cls(agent.pk, name, description, agent.owner_id, snapshot, "stored", target, version_id, version_number)

    def build(self) -> BuiltAgent:
        """Return the agent of pydantic-ai. Raise AgentBuildError.

        Live and draft agents are cached. The key contains all that they are built from, so no entry becomes stale.
        """
        reload_missing_entries(keys_of_fields(self.configuration))
        if self.target == Target.CODE and (entry := find_acp_entry(Kind.AGENT, self.id)) and entry.make_agent:
            built: BuiltAgent = entry.make_agent(entry)
            return built
        sub_agents = self._stored_sub_agents()
        if self.version_id is None or self.target not in (Target.LIVE, Target.DRAFT):
            return self._build(sub_agents)
        kinds = [FIELD_KINDS[field] for field in (*OWNED_FIELDS, "scorers") if self.configuration.get(field)]
        key = (
            self.version_id,
            self.variants,
            self.owner_id,
            registry.fingerprint,
            cached_providers.get_table().revision,
            *sorted(registry.staff_revision(kind) for kind in kinds),
            registry.staff_revision(Kind.ACP_AGENT) if names_acp_agent(self.configuration) else "",
            *sub_agents.items,
            spans.is_tracing(),
        )
        return _built_agents.get_or_create(key, lambda: self._build(sub_agents))

    def missing_references(self) -> list[MissingReference]:
        """Return the references that are not registered. The agent runs without them."""
        sub_agents = self._stored_sub_agents()
        stored = StoredAgents(sub_agents.live_ids.keys(), sub_agents.archived, self.owner_id)
        return find_missing_references(keys_of_fields(self.configuration), stored)

    def _build(self, sub_agents: SubAgents) -> BuiltAgent:
        from runs_app.building.agent import build_agent  # imports pydantic-ai, which is heavy

        live_ids = sub_agents.live_ids
        versions = AgentVersion.objects.in_bulk(live_ids.values()) if live_ids else {}
        descriptions = {
            key: str(versions[live_id].snapshot["description"])
            for key, live_id in live_ids.items()
            if live_id in versions
        }
        return build_agent(
            self.configuration,
            known_agents=descriptions,
            archived_agents=sub_agents.archived,
            owner_id=self.owner_id,
        )

    def _stored_sub_agents(self) -> SubAgents:
        """Return the stored sub-agents of the agent's owner and the shared ones."""
        keys = [key for key in self.configuration.get("agents") or [] if registry.get(Kind.AGENT, key) is None]
        if not keys:
            return SubAgents({}, ())
        agents = Agent.objects.with_ids(keys).of_usable_owners(self.owner_id).filter(active_version__isnull=False)
        rows = list(agents.order_by("pk").values_list("pk", "active_version_id", "archived_at"))
        archived = tuple(key for key, _, archived_at in rows if archived_at)
        return SubAgents({key: live_id for key, live_id, archived_at in rows if not archived_at}, archived)


class AgentResolver:
    """The agents that can run: stored agents and agents in code."""

    @overload
    def get(
        self,
        agent_id: str,
        *,
        user: Caller | None = ...,
        version_id: UUID | None = ...,
        version_number: int | None = ...,
        status: str = ...,
        raw: Literal[False] = False,
    ) -> ResolvedAgent: ...

    @overload
    def get(
        self,
        agent_id: str,
        *,
        user: Caller | None = ...,
        version_id: UUID | None = ...,
        version_number: int | None = ...,
        status: str = ...,
        raw: Literal[True],
    ) -> JSONObject: ...

    def get(
        self,
        agent_id: str,
        *,
        user: Caller | None = None,
        version_id: UUID | None = None,
        version_number: int | None = None,
        status: str = "published",
        raw: bool = False,
    ) -> ResolvedAgent | JSONObject:
        """Return an agent: the live version by default. With `raw`, return only its configuration.

        `user` is None for trusted code. Raise Agent.DoesNotExist if the user may not see the agent, AgentArchived, and
        AgentVersion.DoesNotExist if it has no such version.
        """
        agent = self._resolve(agent_id, user, version_id, version_number, status)
        return dict(agent.configuration) if raw else agent

    def list(
        self, user: Caller | None = None, *, status: str = "published", start: int = 0, stop: int | None = None
    ) -> list[ResolvedAgent]:
        """Return the agents that a user may see, by name. Agents in code are only added to a list from the start."""
        pointer, target = POINTER_BY_STATUS[status]
        agents = self._visible(user).filter(active_version__isnull=False).order_by("name", "pk")
        rows = agents.without_archived().select_related(pointer)[start:stop]
        stored = [ResolvedAgent.from_version(row, target, getattr(row, pointer)) for row in rows]
        return stored if start else [*stored, *self._in_code(agents)]

    def _in_code(self, agents: AgentQuerySet) -> Iterator[ResolvedAgent]:
        """Return the agents in code whose ids no stored agent has."""
        entries = registry.entries(Kind.AGENT)
        taken = set(agents.filter(pk__in=[entry.key for entry in entries]).values_list("pk", flat=True))
        return (ResolvedAgent.from_registry(entry) for entry in entries if entry.key not in taken)

    def sub_agent(self, key: str, owner_id: str) -> ResolvedAgent:
        """Return the sub-agent that a key names for agents of an owner. Raise Agent.DoesNotExist and AgentArchived."""
        if (entry := find_entry(Kind.AGENT, key)) is not None:
            return ResolvedAgent.from_registry(entry)
        agent = Agent.objects.of_usable_owners(owner_id).with_versions().get(pk=key)
        reject_archived(agent)
        return self._from_pointer(agent, "published")

    def _resolve(
        self, agent_id: str, user: Caller | None, version_id: UUID | None, version_number: int | None, status: str
    ) -> ResolvedAgent:
        agent = self._find_stored(agent_id, user, status)
        values = {"pk": version_id, "version_number": version_number}
        filters = {name: value for name, value in values.items() if value is not None}
        if agent is not None:
            reject_archived(agent)
            return self._at_version(agent, filters) if filters else self._from_pointer(agent, status)
        entry = registry.get(Kind.AGENT, agent_id)
        if entry is None:
            raise Agent.DoesNotExist(f"There is no agent '{agent_id}'.")
        if filters:
            raise AgentVersion.DoesNotExist(f"Agent '{agent_id}' is defined in code and has no versions.")
        return ResolvedAgent.from_registry(entry)

    def _find_stored(self, agent_id: str, user: Caller | None, status: str) -> Agent | None:
        """Return a stored agent with the version of a status."""
        if user is not None:
            return agent_to_run.first(POINTER_BY_STATUS[status][0], user=user, agent_id=agent_id)
        return Agent.objects.with_versions().filter(pk=agent_id, active_version__isnull=False).first()

    def _at_version(self, agent: Agent, filters: Mapping[str, object]) -> ResolvedAgent:
        try:
            version = AgentVersion.objects.filter(agent=agent, **filters).first()
        except (ValidationError, ValueError, OverflowError):  # an invalid id or number
            version = None
        if version is None:
            raise AgentVersion.DoesNotExist(f"Agent '{agent.pk}' has no such version.")
        return ResolvedAgent.from_version(agent, Target.VERSION, version)

    def _visible(self, user: Caller | None) -> AgentQuerySet:
        return Agent.objects.all() if user is None else Agent.objects.for_user(user)

    def _from_pointer(self, agent: Agent, status: str) -> ResolvedAgent:
        pointer, target = POINTER_BY_STATUS[status]
        return ResolvedAgent.from_version(agent, target, getattr(agent, pointer))


stored_agents = AgentResolver()
