"""A record of an import: parsing, importing and its outcome."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple, Self

from django.conf import settings
from django.db import IntegrityError, transaction

from access_app.permissions import SHARED_OWNER, has_role, owner_ids_for
from access_app.role import SHARED_LABEL, Role
from agentcms.wire.canonical import canonical
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.names import join_path
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agentcms.wire.validation import MAX_JSON_DEPTH
from agents_app.configuration.references import (
    FIELD_KINDS,
    StoredAgents,
    find_missing_references,
    reference_path,
    referenced_keys,
    reload_missing_entries,
)
from agents_app.configuration.schema import (
    WIRE_NAMES,
    ConfigError,
    Issue,
    collecting_issues,
    to_snapshot,
    to_wire_dict,
    validate_agent,
    validate_config,
)
from agents_app.configuration.unknown_in_config import find_unknown_in_config
from agents_app.editing.archive_guard import AgentArchived
from agents_app.editing.archiving import archive_locked
from agents_app.editing.change_context import MAX_LENGTHS, Source, change
from agents_app.models import Agent
from versions_app.models import AgentVersion

if TYPE_CHECKING:
    from django.contrib.auth.models import User

RECORD_KEYS = frozenset({"agent", "archived", "draft", "id", "ownerId"})
CONFIG_KEYS = frozenset(WIRE_NAMES.values())
ACTIONS = ("create", "update", "same", "refuse")
MAX_RECORD_BYTES = 4 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE
MAX_RECORD_WARNINGS = 20


class RecordOutcome(NamedTuple):
    """The outcome of a record: an action of ACTIONS, its reason, the owner, warnings about references, and a code."""

    id: str
    action: str
    reason: str = ""
    owner_id: str = ""
    warnings: Iterable[dict[str, str]] = ()
    code: str = ""


class AppliedRecord(NamedTuple):
    """The change that a record made to its agent: an action of ACTIONS, its owner, and a note or a blank text."""

    action: str
    owner_id: str
    note: str = ""

    @property
    def warnings(self) -> list[dict[str, str]]:
        return [{"field": "", "key": "", "message": self.note}] if self.note else []


class RecordRejected(Exception):
    """A record cannot be imported. The message is the reason."""


class Record(NamedTuple):
    """A line of a file: its value, or an error. The ID is empty if the line has none."""

    id: str
    value: JSONValue = None
    error: str = ""

    @classmethod
    def parse(cls, line: bytes, ids: set[int]) -> Self:
        """Parse a line and add its ID to `ids`. An ID of an earlier line is an error."""
        if len(line) > MAX_RECORD_BYTES:
            return cls("", error=f"The record is larger than {MAX_RECORD_BYTES >> 20} MB.")
        try:
            # A configuration is nested one level deeper than in a request body.
            value = parse_strict_json(line.rstrip(), MAX_JSON_DEPTH + 1)
        except InvalidJSON as error:
            # The report has the line of the file, and a record is one line.
            return cls("", error=str(error).replace(" at line 1, column", " at column"))
        agent_id = value.get("id") if isinstance(value, dict) else None
        if not isinstance(agent_id, str):
            return cls("", value)
        if hash_id(agent_id) in ids:
            return cls(agent_id, error="An earlier line has the same ID. Remove one of them.")
        ids.add(hash_id(agent_id))
        return cls(agent_id, value)

    @property
    def name(self) -> str:
        """The name of the agent, or "" if the line has none."""
        agent = self.value.get("agent") if isinstance(self.value, dict) else None
        name = agent.get("name") if isinstance(agent, dict) else None
        return name if isinstance(name, str) else ""


def hash_id(agent_id: str) -> int:
    """Return a hash of eight bytes, to save memory: a file may have millions of IDs."""
    return int.from_bytes(hashlib.sha256(agent_id.encode()).digest()[:8])


def import_record(record: Record, user: User, options: JSONObject, file_ids: Container[int] = ()) -> RecordOutcome:
    """Import a record. In strict mode, `file_ids` has the hashes of all IDs of the file."""
    agent_id = record.id
    if record.error:
        return RecordOutcome(agent_id, "refuse", record.error)
    message = f"Imported from {options.get('name') or 'a file'}"[: MAX_LENGTHS["message"]]
    try:
        live, draft, owner_id = parse_record(record.value)
        unknown = check_record_names(record.value, strict=bool(options.get("strict")))
        with transaction.atomic(), change(actor=user, message=message, source=Source.IMPORT):
            applied = apply_record(agent_id, live, draft, owner_id, user, bool(options.get("publish")))
            if applied.action == "create" and record.value.get("archived"):
                archive_locked(Agent.objects.get_locked(agent_id))
            if options.get("strict"):
                reject_missing_references(live, draft, applied.owner_id, file_ids)
            if options.get("dryRun"):
                transaction.set_rollback(True)  # after all checks that a real import makes
        names = [name._asdict() for name in unknown]
        warnings = [*applied.warnings, *names, *missing_reference_warnings(live, draft, applied.owner_id)]
        return RecordOutcome(agent_id, applied.action, "", applied.owner_id, warnings[:MAX_RECORD_WARNINGS])
    except ConfigError as error:
        return RecordOutcome(agent_id, "refuse", describe_issues(error), code=error.issue_code)
    except (RecordRejected, AgentArchived) as error:
        return RecordOutcome(agent_id, "refuse", str(error))
    except IntegrityError:  # it is invisible to the user, or somebody created it meanwhile
        return RecordOutcome(agent_id, "refuse", f"Agent with id {agent_id} already exists")


def describe_issues(error: ConfigError) -> str:
    # The first ones: a record may have thousands, and the report limits the length of a reason.
    return " ".join(f"{field}: {message}" if field else message for field, message in error.issues[:10])


def check_record_names(record: JSONMapping, *, strict: bool) -> list[UnknownName]:
    """Return the keys of a record that nothing reads, with their paths. Raise ConfigError in strict mode."""
    unknown = find_unknown_names(record, RECORD_KEYS)
    for path in ("agent", "draft"):
        if isinstance(fields := record.get(path), dict):
            unknown += find_unknown_names(fields, CONFIG_KEYS, path)
            unknown += [name._replace(field=join_path(path, name.field)) for name in find_unknown_in_config(fields)]
    if strict and unknown:
        raise ConfigError([Issue(name.field, name.message) for name in unknown])
    return unknown


def parse_record(record: object) -> tuple[JSONObject, JSONObject | None, str | None]:
    """Return the live configuration, the draft and the owner of a record.

    Raise RecordRejected and ConfigError.
    """
    if not isinstance(record, dict) or not isinstance(record.get("agent"), dict):
        raise RecordRejected(
            'A record must be an object with "id" and "agent". "draft", "ownerId" and "archived" are optional.'
        )
    if not isinstance(record.get("archived"), bool | None):
        raise RecordRejected("archived: This must be true or false.")
    issues: list[Issue] = []
    draft_issues: list[Issue] = []
    live: JSONObject = {}
    draft = None
    with collecting_issues(issues):
        live = validate_agent({**record["agent"], "id": record.get("id"), "ownerId": record.get("ownerId")})
    with collecting_issues(draft_issues):
        draft = None if record.get("draft") is None else validate_config(record["draft"])
    if issues := [*issues, *prefix_with_draft(draft_issues)]:
        raise ConfigError(issues)
    owner_id = live.pop("owner_id")
    del live["id"]
    return live, draft, owner_id


def prefix_with_draft(issues: Iterable[Issue]) -> list[Issue]:
    return [issue._replace(field=join_path("draft", issue.field) if issue.field else "draft") for issue in issues]


def apply_record(
    agent_id: str,
    live: JSONObject,
    draft: JSONObject | None,
    owner_id: str | None,
    user: User,
    publish: bool,
) -> AppliedRecord:
    """Create or change the agent. Changes of an existing agent are a draft unless `publish` is true.

    Raise RecordRejected.
    """
    try:
        # Not asked for before: an agent that somebody deletes between the two would end the whole import.
        agent = Agent.objects.for_user(user).get_locked(agent_id)
    except Agent.DoesNotExist:
        owner_id = choose_owner(user, owner_id)
        create_agent(agent_id, live, draft, owner_id)
        return AppliedRecord("create", owner_id)
    if not has_role(user, Role.PUBLISHER, agent.owner_id):
        raise RecordRejected(missing_publisher_message(agent.owner_id))
    if owner_id not in (None, agent.owner_id):
        raise RecordRejected(f"The owner of the agent is {agent.owner_id or SHARED_LABEL}. Change the owner first.")
    earlier = agent.head_version if agent.has_draft else None
    action = update_agent(agent, live, draft, publish)
    return AppliedRecord(
        action, agent.owner_id, replaced_draft_note(agent, earlier, user) if action == "update" else ""
    )


def replaced_draft_note(agent: Agent, earlier: AgentVersion | None, user: User) -> str:
    """Return that an import took the place of the draft of another user, or a blank text if it did not.

    `earlier` is the draft that the agent had before, if it had one.
    """
    head = agent.head_version
    if earlier is None or earlier.author_id == user.pk or head is None or head.snapshot_hash == earlier.snapshot_hash:
        return ""
    author = f" by {earlier.author_name}" if earlier.author_name else ""
    return f"Draft v{earlier.version_number}{author} is replaced. It stays in the history."


def update_agent(agent: Agent, live: JSONObject, draft: JSONObject | None, publish: bool) -> str:
    """Edit a locked agent where it differs from the record. Return the action."""
    versions = []
    # Unpublished, it would be a draft that the draft of the record replaces at once.
    if not equals_version(live, agent.active_version) and (publish or draft is None):
        with change(publish=publish):
            versions.append(agent.edit_locked(live))
    if draft is not None and not equals_version(draft, agent.head_version):
        with change(publish=False):
            versions.append(agent.edit_locked(draft))
    return "update" if any(versions) else "same"


def create_agent(agent_id: str, live: JSONObject, draft: JSONObject | None, owner_id: str) -> None:
    agent = Agent(id=agent_id, owner_id=owner_id, **live)
    agent.insert()
    if draft is not None:
        with change(publish=False):
            Agent.objects.get_locked(agent_id).edit_locked(draft)


def choose_owner(user: User, requested: str | None) -> str:
    """Return the owner of a new agent. Raise RecordRejected if the user may not publish for it."""
    if requested is None and not user.is_superuser:
        # Two are enough to know that there is more than one.
        owner_ids = list(owner_ids_for(user, Role.PUBLISHER)[:2])
        if len(owner_ids) != 1:
            raise RecordRejected("Set the ownerId of this agent.")
        return owner_ids[0]
    owner_id = SHARED_OWNER if requested is None else requested
    if not has_role(user, Role.PUBLISHER, owner_id):
        raise RecordRejected(missing_publisher_message(owner_id))
    return owner_id


def missing_publisher_message(owner_id: str) -> str:
    return f"Publishing needs the Publisher role in {owner_id or SHARED_LABEL}."


def equals_version(fields: JSONObject, version: AgentVersion | None) -> bool:
    return version is not None and canonical(to_snapshot(fields)) == version.snapshot_text


# --- Missing references


def reject_missing_references(
    live: JSONObject, draft: JSONObject | None, owner_id: str, file_ids: Container[int]
) -> None:
    """Raise ConfigError with the path of each reference to something that does not exist."""
    issues = find_reference_issues(live, owner_id, file_ids)
    if draft is not None:
        issues += prefix_with_draft(find_reference_issues(draft, owner_id, file_ids))
    if issues:
        raise ConfigError(issues)


def find_reference_issues(state: JSONObject, owner_id: str, file_ids: Container[int]) -> list[Issue]:
    """Return an issue for each missing reference. A sub-agent may be stored, or in the same file."""
    body = to_wire_dict(state)
    keys_by_field = referenced_keys(body)
    reload_missing_entries(keys_by_field)
    keys = keys_by_field.get("agents", [])
    stored = Agent.objects.stored_among({"": (owner_id, keys)})[""]
    in_file = [key for key in keys if hash_id(key) in file_ids and key not in stored.archived]
    return [
        Issue(reference_path(missing.field, missing.key, body), missing.message)
        for missing in find_missing_references(keys_by_field, stored._replace(usable=[*stored.usable, *in_file]))
    ]


def missing_reference_warnings(live: JSONObject, draft: JSONObject | None, owner_id: str) -> list[dict[str, str]]:
    """Return warnings about what an owner's agent lacks, including all stored sub-agents: these are checked later."""
    states = [referenced_keys(to_wire_dict(fields)) for fields in (live, draft) if fields is not None]
    keys = {field: dict.fromkeys(key for state in states for key in state.get(field, ())) for field in FIELD_KINDS}
    reload_missing_entries(keys)
    missing = find_missing_references(keys, StoredAgents(owner_id=owner_id))
    return [warning._asdict() for warning in missing][:MAX_RECORD_WARNINGS]
