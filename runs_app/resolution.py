"""Which configuration of an agent runs: live by default, its draft, a version of it, or a text nobody saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload
from uuid import UUID

from cachetools import LRUCache
from django.core.exceptions import ValidationError

from access_app.permissions import SHARED_OWNER
from agentcms.cache import SizeLimitedCache
from agents_app.configuration.references import MissingReference, find_missing_references, referenced_keys
from agents_app.configuration.schema import to_wire_dict
from agents_app.models import Agent
from agents_app.registry import Entry, Kind, registry
from runs_app.models import AgentRun
from runs_app.providers import table
from versions_app.models import AgentVersion

if TYPE_CHECKING:
    from runs_app.building.agent import BuiltAgent

Target = AgentRun.Target
MAX_BUILT_AGENTS = 256  # per process

_built_agents: SizeLimitedCache[tuple[Any, ...], BuiltAgent] = SizeLimitedCache(LRUCache(MAX_BUILT_AGENTS))

POINTERS = {"published": ("active_version", Target.LIVE), "draft": ("head_version", Target.DRAFT)}


@dataclass(frozen=True)
class ResolvedAgent:
    """An agent as one of its configurations, ready to be built and run."""

    id: str
    name: str
    description: str
    owner_id: str
    configuration: Mapping[str, Any]  # under wire names
    source: str  # "stored" or "code"
    target: str  # of AgentRun.Target
    version_id: UUID | None = None
    version_number: int | None = None

    @classmethod
    def from_version(cls, agent: Agent, target: Target, version: AgentVersion) -> ResolvedAgent:
        return cls._shown(agent, target, version.snapshot, version.pk, version.version_number)

    @classmethod
    def unsaved(cls, agent: Agent, configuration: Mapping[str, Any]) -> ResolvedAgent:
        """The text in an editor, as an agent."""
        return cls._shown(agent, Target.UNSAVED, configuration)

    @classmethod
    def from_registry(cls, entry: Entry) -> ResolvedAgent:
        return cls(
            entry.key, entry.title, entry.description, SHARED_OWNER, to_wire_dict(entry.target), "code", Target.CODE
        )

    @classmethod
    def from_run(cls, run: AgentRun) -> ResolvedAgent:
        """What a run began with."""
        said = run.configuration
        source = "code" if run.target == Target.CODE else "stored"
        name, description = said.get("name", ""), said.get("description", "")
        version = (run.version_id, run.version_number)
        return cls(run.agent_key, name, description, run.owner_id, said, source, run.target, *version)

    @classmethod
    def _shown(cls, agent: Agent, target: Target, said: Mapping[str, Any], *version: Any) -> ResolvedAgent:
        name, description = said.get("name", agent.name), said.get("description", "")
        return cls(agent.pk, name, description, agent.owner_id, said, "stored", target, *version)

    def build(self) -> BuiltAgent:
        """The agent that runs. Raises CannotBuild.

        Live and draft ones are kept under their version, which never changes, and whatever else they are made of: so
        no process needs to be told when something moves. One that somebody asked for by its version is built anew.
        """
        known = self._known_agents()
        if self.version_id is None or self.target not in (Target.LIVE, Target.DRAFT):
            return self._built(known)
        key = (self.version_id, registry.fingerprint, table.get_table().revision, *sorted(known.items()))
        return _built_agents.get_or_create(key, lambda: self._built(known))

    def missing(self) -> list[MissingReference]:
        """What the configuration names and nothing registered; it runs without."""
        return find_missing_references(referenced_keys(self.configuration), self._known_agents())

    def _built(self, known: Mapping[str, Any]) -> BuiltAgent:
        from runs_app.building.agent import build  # it imports pydantic-ai, which is heavy

        texts = AgentVersion.objects.in_bulk(known.values()) if known else {}
        descriptions = {key: str(texts[live].snapshot["description"]) for key, live in known.items() if live in texts}
        return build(self.configuration, known_agents=descriptions)

    def _known_agents(self) -> dict[str, Any]:
        """The stored agents among those it names that it may ask, with their live versions."""
        named = [key for key in self.configuration.get("agents") or [] if registry.get(Kind.AGENT, key) is None]
        if not named:
            return {}
        usable = Agent.objects.with_ids(named).usable_by(self.owner_id).filter(active_version__isnull=False)
        return dict(usable.order_by("pk").values_list("pk", "active_version_id"))


class AgentResolver:
    """The agents that can run: those that are stored, and those that live in code."""

    @overload
    def get(
        self,
        agent_id: str,
        *,
        user: Any = ...,
        version_id: Any = ...,
        version_number: int | None = ...,
        status: str = ...,
        raw: Literal[False] = False,
    ) -> ResolvedAgent: ...

    @overload
    def get(
        self,
        agent_id: str,
        *,
        user: Any = ...,
        version_id: Any = ...,
        version_number: int | None = ...,
        status: str = ...,
        raw: Literal[True],
    ) -> dict[str, Any]: ...

    def get(
        self,
        agent_id: str,
        *,
        user: Any = None,
        version_id: Any = None,
        version_number: int | None = None,
        status: str = "published",
        raw: bool = False,
    ) -> ResolvedAgent | dict[str, Any]:
        """An agent, live unless another version or `status="draft"` is asked for; `raw` is its configuration alone.

        A user sees what it may see; None is trusted code. Raises Agent.DoesNotExist, or AgentVersion.DoesNotExist
        where the version is none of this agent's.
        """
        found = self._find(agent_id, user, version_id, version_number, status)
        return dict(found.configuration) if raw else found

    def list(
        self, user: Any = None, *, status: str = "published", start: int = 0, stop: int | None = None
    ) -> list[ResolvedAgent]:
        """The agents that the user may see, by name, or some of them; those in code follow what begins the list."""
        pointer, target = POINTERS[status]
        agents = self._seen(user).filter(active_version__isnull=False).order_by("name", "pk")
        rows = agents.select_related(pointer)[start:stop]
        stored = [ResolvedAgent.from_version(row, target, getattr(row, pointer)) for row in rows]
        return stored if start else [*stored, *self._in_code(agents)]

    def _in_code(self, agents: Any) -> Iterator[ResolvedAgent]:
        """Those that live in code and whose id none of these agents has."""
        entries = registry.entries(Kind.AGENT)
        taken = set(agents.filter(pk__in=[entry.key for entry in entries]).values_list("pk", flat=True))
        return (ResolvedAgent.from_registry(entry) for entry in entries if entry.key not in taken)

    def sub_agent(self, key: str, owner_id: str) -> ResolvedAgent:
        """What an agent of this owner means by a sub-agent's key. Raises Agent.DoesNotExist."""
        if (entry := registry.get(Kind.AGENT, key)) is not None:
            return ResolvedAgent.from_registry(entry)
        agents = Agent.objects.usable_by(owner_id).with_versions()
        return ResolvedAgent.from_version(*self._pointed(agents.get(pk=key), "published"))

    def _find(
        self, agent_id: str, user: Any, version_id: Any, version_number: int | None, status: str
    ) -> ResolvedAgent:
        agent = self._seen(user).with_versions().filter(pk=agent_id, active_version__isnull=False).first()
        given = {"pk": version_id, "version_number": version_number}
        named = {name: value for name, value in given.items() if value is not None}
        if agent is not None:
            return (
                self._versioned(agent, named) if named else ResolvedAgent.from_version(*self._pointed(agent, status))
            )
        entry = registry.get(Kind.AGENT, agent_id)
        if entry is None:
            raise Agent.DoesNotExist(f"There is no agent '{agent_id}'.")
        if named:
            raise AgentVersion.DoesNotExist(f"Agent '{agent_id}' lives in code and has no versions.")
        return ResolvedAgent.from_registry(entry)

    def _versioned(self, agent: Agent, named: dict[str, Any]) -> ResolvedAgent:
        try:
            version = AgentVersion.objects.filter(agent=agent, **named).first()
        except (ValidationError, ValueError, OverflowError):  # it can be no id, or no number
            version = None
        if version is None:
            raise AgentVersion.DoesNotExist(f"Agent '{agent.pk}' has no such version.")
        return ResolvedAgent.from_version(agent, Target.VERSION, version)

    def _seen(self, user: Any) -> Any:
        return Agent.objects.all() if user is None else Agent.objects.for_user(user)

    def _pointed(self, agent: Agent, status: str) -> tuple[Agent, Target, AgentVersion]:
        pointer, target = POINTERS[status]
        return agent, target, getattr(agent, pointer)


stored_agents = AgentResolver()
