"""Facts about a caller, on which variants, variables in instructions and filters of searches may depend.

They come from the credentials. What a caller says in the request context are claims, over which facts win.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from access_app.caller import Caller
from access_app.permissions import role_for
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.knowledge import KNOWLEDGE, fact_names
from agents_app.configuration.variables import find_placeholders
from agents_app.configuration.variants import CONDITIONAL, apply_variants, choose_variants
from agents_app.models import Agent
from runs_app.building.memory_parameters import memory_takes_context
from runs_app.resolution import ResolvedAgent, Target

FACTS = "facts"  # in the input of a run
VARIANTS = "variants"  # in the input of a run: the indexes of the chosen ones, by field


def find_facts(user: Caller | None, agent: ResolvedAgent) -> JSONObject:
    """Return the facts about a caller on which an agent depends: those that it names, or all.

    All for variants, for a registered memory that asks for them, and for sub-agents, which may name others.
    """
    places = find_placeholders(str(agent.configuration.get("instructions") or ""))
    names = {place.path.split(".")[0] for place in places} | {*fact_names(agent.configuration.get(KNOWLEDGE))}
    needs_all = bool(agent.configuration.get(CONDITIONAL) or agent.configuration.get("agents"))
    needs_all = needs_all or memory_takes_context(agent.configuration.get("memory"))
    if user is None or not (needs_all or names):
        return {}
    key = getattr(user, "api_key", None)
    facts = {**((key.context if key is not None else None) or {}), "userId": f"u{user.pk}", "owner": agent.owner_id}
    if needs_all or "roles" in names:
        role = role_for(user, agent.owner_id)
        facts["roles"] = [role.value] if role else []
    return facts if needs_all else {name: value for name, value in facts.items() if name in names}


def with_variants(agent: ResolvedAgent, facts: JSONObject, claims: JSONObject) -> ResolvedAgent:
    """Return an agent with the variants that hold for a call."""
    if not agent.configuration.get(CONDITIONAL):
        return agent
    chosen = choose_variants(agent.configuration, facts, claims)
    return replace(
        agent, configuration=apply_variants(agent.configuration, chosen), variants=tuple(sorted(chosen.items()))
    )


def context_input(agent: ResolvedAgent, facts: JSONObject) -> JSONObject:
    """Return the members of the input of a run that say which facts and variants it has."""
    members: JSONObject = {FACTS: facts} if facts else {}
    return {**members, VARIANTS: dict(agent.variants)} if agent.variants else members


def adapt_to_caller(
    agent: ResolvedAgent, user: Caller | None, claims: JSONMapping, tried: JSONMapping
) -> tuple[ResolvedAgent, JSONObject]:
    """Return an agent with the variants that hold for a caller, and the members of the input of its run.

    `tried` are facts of another caller, as whom somebody tries the agent.
    """
    facts = {**find_facts(user, agent), **tried}
    agent = with_variants(agent, facts, dict(claims))
    return agent, context_input(agent, facts)


def memory_for_caller(agent: Agent | None, user: Caller, claims: JSONMapping = MappingProxyType({})) -> JSONValue:
    """Return the memory of the live version of an agent that a run of a caller has, or None."""
    if agent is None or agent.active_version is None:
        return None
    resolved = ResolvedAgent.from_version(agent, Target.LIVE, agent.active_version)
    if resolved.configuration.get(CONDITIONAL):
        resolved = with_variants(resolved, find_facts(user, resolved), dict(claims))
    memory: JSONValue = resolved.configuration.get("memory")
    return memory
