"""Conditional changes with `If-Match`, and what the error says of the change that came before."""

from __future__ import annotations

import re
from typing import NamedTuple

from rest_framework.request import Request

from agentcms.api.etags import named_etags
from agentcms.errors import PreconditionFailed
from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from agents_app.api import representation
from agents_app.configuration import schema
from agents_app.models import Agent
from versions_app.compare.diff import changed_fields
from versions_app.compare.merge import merge_snapshots
from versions_app.history.earlier_state import EarlierState
from versions_app.models import Activation, AgentVersion
from versions_app.models.version import get_head_version, get_live_version

# As `Agent.etag` writes it: the key of the row and a revision.
_STATE = re.compile(r"([0-9a-f]{12})\.[0-9]{1,19}")


class ProposedEdit(NamedTuple):
    """The validated fields of a PATCH, and whether it publishes."""

    fields: JSONObject
    publishes: bool


class MergeOutlook(NamedTuple):
    """The fields that changed since a client read an agent, and the paths at which its own edit touches those."""

    changed: list[str]
    touching: list[str]


def validate_if_match(request: Request, agent: Agent, edit: ProposedEdit | None = None) -> None:
    """Raise PreconditionFailed if `If-Match` names another state. The part about the warnings is ignored.

    With `edit`, the error says whether the edit touches what changed since.
    """
    header = request.META.get("HTTP_IF_MATCH")
    # A blank header is a mismatch: the server passes invalid bytes as blank.
    if header is None or header.strip() == "*":
        return
    # Without the last part, on which only the warnings depend: nothing that an edit could undo.
    states = {tag.rpartition(".")[0] for tag in named_etags(header)}
    if agent.etag in states:
        return
    outlook = find_merge_outlook(agent, edit, states) if edit else None
    details = {"changedFields": outlook.changed, "touching": outlook.touching} if outlook else None
    change = describe_replacement(agent) if names_other_agent(agent, states) else describe_last_change(agent)
    error = f"{change}.{describe_outlook(outlook)} Read the agent and try again."
    live = representation.AgentRow.of(agent, get_live_version(agent))
    raise PreconditionFailed(error, representation.agent_etag(live, representation.own_warnings_json(live)), details)


def names_other_agent(agent: Agent, states: set[str]) -> bool:
    """Return whether all these states are those of other agents, such as one that had the ID before."""
    keys = {match[1] for state in states if (match := _STATE.fullmatch(state))}
    return bool(keys) and agent.row_key not in keys


def describe_replacement(agent: Agent) -> str:
    time = format_timestamp(agent.created_at)
    return f"This is not the agent that you read, but another one with this ID, created at {time}"


def find_merge_outlook(agent: Agent, edit: ProposedEdit, states: set[str]) -> MergeOutlook | None:
    """Compare an edit with the changes since the newest of these states.

    Return None if the state is not known, or if no field changed since.
    """
    known = [state.rpartition(".")[2] for state in states if state.startswith(f"{agent.row_key}.")]
    revisions = [int(revision) for revision in known if is_revision(revision)]
    if not revisions:
        return None
    earlier = EarlierState(agent, max(revisions))
    base = earlier.find_live() if edit.publishes else earlier.find_head()
    if base is None:
        return None
    current = get_live_version(agent) if edit.publishes else get_head_version(agent)
    changed = changed_fields(base.snapshot, current.snapshot)
    if not changed:
        return None
    mine = schema.to_snapshot(edit.fields, base.snapshot)
    return MergeOutlook(changed, merge_snapshots(base.snapshot, mine, current.snapshot).touching)


def is_revision(text: str) -> bool:
    # The column has 19 digits. Python refuses to convert thousands of them.
    return text.isascii() and text.isdigit() and len(text) <= 19


def describe_outlook(outlook: MergeOutlook | None) -> str:
    if outlook is None:
        return ""
    if outlook.touching:
        return f" Your changes of {', '.join(outlook.touching)} touch theirs."
    return " Your changes do not touch theirs."


def describe_last_change(agent: Agent) -> str:
    """Describe the last change of the agent, with its author and time."""
    version = AgentVersion.objects.filter(agent=agent).first()
    activation = Activation.objects.filter(agent=agent).first()
    # A published save has the same time as its activation and is described as a save.
    records: list[AgentVersion | Activation] = [record for record in (version, activation) if record is not None]
    newest = max(records, key=lambda record: record.created_at)
    author, time = newest.author_name or "The system", format_timestamp(newest.created_at)
    if agent.updated_at > newest.created_at:
        change = describe_change_without_version(agent)
    elif isinstance(newest, AgentVersion):
        change = f"{author} saved version {newest.version_number} at {time}{describe_save(agent, newest)}"
    else:
        change = f"{author} published version {newest.to_version_number} at {time}"
    return change


def describe_change_without_version(agent: Agent) -> str:
    if agent.archived_at is not None:
        return f"{agent.archived_by_name or 'The system'} archived the agent at {format_timestamp(agent.archived_at)}"
    return (
        "The owner changed, the draft was discarded, or the agent was unarchived or restored at "
        f"{format_timestamp(agent.updated_at)}"
    )


def describe_save(agent: Agent, version: AgentVersion) -> str:
    """Describe whether a version was published with its save, and what it changed."""
    state = " and published it" if version.pk == agent.active_version_id else " as a draft" if agent.has_draft else ""
    return f"{state}, changing {', '.join(version.changed_fields)}" if version.changed_fields else state
