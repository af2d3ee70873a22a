"""One record of an import: read from its line, taken in or refused, and what is to be said of it."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.db import IntegrityError, transaction

from access_app.permissions import SHARED_OWNER, has_role, owner_ids_for
from access_app.role import Role
from agentcms.wire.canonical import canonical
from agentcms.wire.names import join_path
from agentcms.wire.parser import InvalidJSON, parse
from agentcms.wire.validation import MAX_DEPTH
from agents_app.configuration.references import FIELD_KINDS, find_missing_references, reference_path, referenced_keys
from agents_app.configuration.schema import (
    ConfigError,
    Issue,
    collecting_issues,
    to_wire_dict,
    validate_config,
    validate_new_agent,
)
from agents_app.editing.change_context import Source, change
from agents_app.models import Agent
from agents_app.models.querysets import usable_owners

ACTIONS = ("create", "update", "same", "refuse")
MAX_RECORD_BYTES = 4 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE
MAX_WARNINGS = 20


class Outcome(NamedTuple):
    """What became of a record: one of ACTIONS, and why; whose the agent is, and what nothing registered of what it
    names."""

    id: str
    action: str
    reason: str = ""
    owner_id: str = ""
    warnings: Iterable[dict[str, str]] = ()


class RecordRejected(Exception):
    """A record that cannot be taken in, and why."""


class Record(NamedTuple):
    """A line of a file: its value, or why it has none; its id is blank where it says none."""

    id: str
    value: Any = None
    fault: str = ""

    @classmethod
    def read(cls, line: bytes, ids: set[int]) -> Self:
        """The record of a line; an id that stood on an earlier line, which `ids` remembers, is a fault."""
        if len(line) > MAX_RECORD_BYTES:
            return cls("", fault=f"A record may have {MAX_RECORD_BYTES >> 20} MB. This one has more.")
        try:
            value = parse(line, MAX_DEPTH + 1)  # a configuration stands a level deeper here than in a body
        except InvalidJSON as error:
            return cls("", fault=str(error))
        agent_id = value.get("id") if isinstance(value, dict) else None
        if not isinstance(agent_id, str):
            return cls("", value)
        if hash_id(agent_id) in ids:
            return cls(agent_id, fault="An earlier line of the file has this id. Keep one of them.")
        ids.add(hash_id(agent_id))
        return cls(agent_id, value)


def hash_id(agent_id: str) -> int:
    """An id as a number of eight bytes: a file may have millions of ids."""
    return int.from_bytes(hashlib.sha256(agent_id.encode()).digest()[:8])


def import_record(record: Record, user: Any, options: dict[str, Any], coming: Container[int] = ()) -> Outcome:
    """Take one record in, or say why not; `coming` has the marks of all ids of the file, where that is strict."""
    agent_id = record.id
    if record.fault:
        return Outcome(agent_id, "refuse", record.fault)
    message = f"Imported from {options.get('name') or 'a file'}"[:500]
    try:
        live, draft, owner_id = parse_record(record.value)
        with transaction.atomic(), change(actor=user, message=message, source=Source.IMPORT):
            action, owner_id = apply_record(agent_id, live, draft, owner_id, user, bool(options.get("publish")))
            if options.get("strict"):
                reject_missing_references(live, draft, owner_id, coming)
            if options.get("dryRun"):
                transaction.set_rollback(True)
        return Outcome(agent_id, action, "", owner_id, missing_reference_warnings(live, draft))
    except ConfigError as error:
        return Outcome(agent_id, "refuse", " ".join(f"{field}: {message}" for field, message in error.issues[:10]))
    except RecordRejected as error:
        return Outcome(agent_id, "refuse", str(error))
    except IntegrityError:
        return Outcome(agent_id, "refuse", f"Agent with id {agent_id} already exists")


def parse_record(record: Any) -> tuple[dict[str, Any], dict[str, Any] | None, str | None]:
    """The live configuration, the draft and the owner of a record. Raises Refusal and ShapeError."""
    if not isinstance(record, dict) or not isinstance(record.get("agent"), dict):
        raise RecordRejected('A record is an object with "id" and "agent", and may have "draft" and "ownerId".')
    issues: list[Issue] = []
    of_draft: list[Issue] = []
    whole: dict[str, Any] = {}
    draft = None
    with collecting_issues(issues):
        whole = validate_new_agent({**record["agent"], "id": record.get("id"), "ownerId": record.get("ownerId")})
    with collecting_issues(of_draft):
        draft = None if record.get("draft") is None else validate_config(record["draft"])
    if issues := [*issues, *prefix_with_draft(of_draft)]:
        raise ConfigError(issues)
    owner_id = whole.pop("owner_id")
    del whole["id"]
    return whole, draft, owner_id


def prefix_with_draft(issues: Iterable[Issue]) -> list[Issue]:
    return [Issue(join_path("draft", field) if field else "draft", message) for field, message in issues]


def apply_record(
    agent_id: str, live: dict[str, Any], draft: dict[str, Any] | None, owner_id: str | None, user: Any, publish: bool
) -> tuple[str, str]:
    """Create or change the agent; changes of one that is there stay a draft unless they are to go live.

    Returns what was done, and whose the agent is.
    """
    seen = Agent.objects.for_user(user).filter(pk=agent_id)
    if not seen.exists():
        owner_id = choose_owner(user, owner_id)
        create_agent(agent_id, live, draft, owner_id)
        return "create", owner_id
    agent = seen.get_locked(agent_id)
    if not has_role(user, Role.PUBLISHER, agent.owner_id):
        raise RecordRejected(f"This needs the role publisher for {agent.owner_id or 'the shared space'}.")
    if owner_id not in (None, agent.owner_id):
        raise RecordRejected(f"The agent belongs to {agent.owner_id or 'the shared space'}. Hand it over first.")
    made = []
    if not equals_version(live, agent.active_version) and (publish or draft is None):
        with change(publish=publish):
            made.append(agent.edit_locked(live))
    if draft is not None and not equals_version(draft, agent.head_version):
        with change(publish=False):
            made.append(agent.edit_locked(draft))
    return "update" if any(made) else "same", agent.owner_id


def create_agent(agent_id: str, live: dict[str, Any], draft: dict[str, Any] | None, owner_id: str) -> None:
    agent = Agent(id=agent_id, owner_id=owner_id, **live)
    agent.insert()
    if draft is not None:
        with change(publish=False):
            Agent.objects.get_locked(agent_id).edit_locked(draft)


def choose_owner(user: Any, named: str | None) -> str:
    """The owner of a new agent, which must be one that the caller may publish for. Raises Refusal."""
    if named is None and not user.is_superuser:
        able = list(owner_ids_for(user, Role.PUBLISHER)[:2])
        if len(able) != 1:
            raise RecordRejected("Name the ownerId of this agent.")
        return able[0]
    owner_id = SHARED_OWNER if named is None else named
    if not has_role(user, Role.PUBLISHER, owner_id):
        raise RecordRejected(f"This needs the role publisher for {owner_id or 'the shared space'}.")
    return owner_id


def equals_version(fields: dict[str, Any], version: Any) -> bool:
    return canonical(to_wire_dict(fields)) == version.snapshot_text


# --- What nothing registered


def reject_missing_references(
    live: dict[str, Any], draft: dict[str, Any] | None, owner_id: str, coming: Container[int]
) -> None:
    """Refuse what names things that nothing registered, at their places. Raises ShapeError."""
    issues = find_reference_issues(live, owner_id, coming)
    if draft is not None:
        issues += prefix_with_draft(find_reference_issues(draft, owner_id, coming))
    if issues:
        raise ConfigError(issues)


def find_reference_issues(state: dict[str, Any], owner_id: str, coming: Container[int]) -> list[Issue]:
    """What nothing registered of a configuration; a sub-agent may be stored, or stand on a later line."""
    body = to_wire_dict(state)
    named = referenced_keys(body)
    keys = named.get("agents", [])
    owner_of = dict.fromkeys([key for key in keys if hash_id(key) in coming], owner_id) | Agent.objects.owners_of(keys)
    known = [key for key in keys if owner_of.get(key) in usable_owners(owner_id)]
    return [
        Issue(reference_path(each.field, each.key, body), each.message)
        for each in find_missing_references(named, known)
    ]


def missing_reference_warnings(live: dict[str, Any], draft: dict[str, Any] | None) -> list[dict[str, str]]:
    """The warnings of what is live and of the draft; every stored agent that they name is among them."""
    states = [referenced_keys(to_wire_dict(each)) for each in (live, draft) if each is not None]
    named = {field: dict.fromkeys(key for state in states for key in state.get(field, ())) for field in FIELD_KINDS}
    return [warning._asdict() for warning in find_missing_references(named)][:MAX_WARNINGS]


def drop_resolved_warnings(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records once all are taken in: a sub-agent that is stored now, or would be, is no warning any more."""
    owner_of = {each["id"]: each.pop("ownerId", SHARED_OWNER) for each in records if each["action"] != "refuse"}
    named = {warning["key"] for each in records for warning in each.get("warnings", ()) if is_agent_warning(warning)}
    stored = owner_of | Agent.objects.owners_of(named)
    for each in records:
        usable = usable_owners(owner_of.get(each.get("id", "")))
        found = each.pop("warnings", ())
        if left := [one for one in found if not is_agent_warning(one) or stored.get(one["key"], one) not in usable]:
            each["warnings"] = left
    return records


def is_agent_warning(warning: dict[str, str]) -> bool:
    return warning["field"] == "agents"
