"""The rows of the agent list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

from django.db.models import F, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.utils.text import Truncator

from agents_app.api.representation import known_agents, warnings_json
from agents_app.configuration.mcp_clients import selected_tools
from agents_app.configuration.references import NO_AGENTS
from agents_app.configuration.tags import read_tags
from agents_app.models import Agent, AgentQuerySet
from agents_app.registry import Kind, registry
from agents_app.search.snippets import SnippetPart, build_snippet, highlight, word_pattern
from agents_app.views.status import AgentStatus, agent_status, find_drafts, find_warnings, last_changed_by

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class ListAnnotations(TypedDict):
        tags_json: Any

    ListedAgent = WithAnnotations[Agent, ListAnnotations]

DESCRIPTION_LENGTH = 140

# Columns that the list does not show. Their texts can be long.
UNUSED_COLUMNS = (
    "active_version__snapshot_text",
    "head_version__snapshot_text",
    "request_context_schema",
    "default_options",
    "metadata",
    "input_processors",
    "output_processors",
    "scorers",
)


@dataclass(frozen=True)
class AgentListRow:
    """A row of the list. In a search, the parts of the texts that match are marked."""

    agent: Agent
    status: AgentStatus
    updated_by: str | None  # blank for the system, None if nobody is recorded
    tags: Sequence[str]
    name: Sequence[SnippetPart]
    description: Sequence[SnippetPart]
    matching_id: Sequence[SnippetPart]
    snippet: Sequence[SnippetPart]

    @property
    def tool_count(self) -> int:
        """The number of tools of all kinds."""
        of_servers = len([*selected_tools(self.agent.mcp_clients)])
        return len(self.agent.tools) + len(self.agent.integration_tools) + of_servers

    @property
    def provider_title(self) -> str:
        provider = self.agent.model["provider"]
        entry = registry.get(Kind.MODEL_PROVIDER, provider)
        return entry.title if entry else provider


def build_rows(agents: AgentQuerySet, ids: Sequence[str], search: str) -> list[AgentListRow]:
    """Return the rows of these agents in the order of the IDs, in a fixed number of queries."""
    unused = UNUSED_COLUMNS if search else (*UNUSED_COLUMNS, "instructions")
    unordered = agents.filter(pk__in=ids).with_versions().annotate(tags_json=KT("metadata__tags")).defer(*unused)
    by_id = {agent.pk: cast("ListedAgent", agent) for agent in unordered}
    ordered = [by_id[pk] for pk in ids if pk in by_id]
    drafts, warnings, authors = find_drafts(ordered), find_warnings(ordered), last_changed_by(ordered)
    return [
        build_agent_row(
            agent, agent_status(agent, warnings[agent.pk], drafts.get(agent.pk)), authors[agent.pk], search
        )
        for agent in ordered
    ]


def build_agent_row(agent: ListedAgent, status: AgentStatus, author: str | None, search: str) -> AgentListRow:
    """Return the row of an agent with the annotation `tags_json`."""
    pattern = word_pattern(search)
    matching_id = highlight(agent.pk, pattern)
    summary = highlight(Truncator(agent.description).chars(DESCRIPTION_LENGTH), None)
    return AgentListRow(
        agent=agent,
        status=status,
        updated_by=author,
        tags=read_tags(agent.tags_json),
        name=highlight(agent.name, pattern),
        description=build_snippet(agent.description, pattern) or summary,
        matching_id=matching_id if any(part.marked for part in matching_id) else [],
        snippet=build_snippet(agent.instructions, pattern) if pattern else [],
    )


def with_draft(agents: AgentQuerySet) -> AgentQuerySet:
    """Return the agents whose heads differ from their live versions."""
    # The first condition reads the agents only: most have one version for both.
    moved = agents.exclude(head_version=F("active_version"))
    return moved.exclude(head_version__snapshot_hash=F("active_version__snapshot_hash"))


def ids_with_missing_references(agents: AgentQuerySet) -> list[str]:
    """Return the IDs of the agents with missing references."""
    # As text: warnings are cached by the text of the references.
    columns = agents.order_by().annotate(references=Cast("head_version__references", TextField()))
    rows: list[Any] = list(columns.values_list("id", "owner_id", "references", named=True))
    known = known_agents(rows)
    return [
        row.id
        for row in rows
        if warnings_json(row.references, registry.fingerprint, known.get(row.id, NO_AGENTS)) != "[]"
    ]
