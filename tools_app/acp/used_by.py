"""The agents that use an ACP agent."""

from __future__ import annotations

from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform

from agents_app.configuration.acp_agents import ACP_PREFIX
from agents_app.models import Agent, AgentQuerySet
from tools_app.models import AcpAgent

FIELDS = ("tools", "agents", "conditional.tools")  # of the references of a version


def find_agents_using_acp_agent(acp_agent: AcpAgent) -> AgentQuerySet:
    """Return the agents whose live version or draft names an ACP agent: as a tool, also in a variant, or sub-agent."""
    # Looked for in the text of a JSON list. Without the quotation marks, it would also be the beginning of other IDs.
    reference = f'"{ACP_PREFIX}{acp_agent.key}"'
    named, matches = {}, Q()
    for version in ("active_version", "head_version"):
        for field in FIELDS:
            named[f"{version}_{field}"] = KeyTextTransform(field, f"{version}__references")
            matches |= Q(**{f"{version}_{field}__contains": reference})
    return Agent.objects.annotate(**named).filter(matches)
