"""Changes of scorers. Every change adds a version. The scorer points at its live one and at its head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from access_app.permissions import SHARED_OWNER
from agentcms.errors import Conflict, NotFound
from agentcms.ids import parse_uuid, parse_whole_number
from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONObject
from agents_app.registry import Kind, registry
from evals_app.datasets.creation import derive_id
from evals_app.models import DeletedScorer, Experiment, ReleaseGate, Scorer, ScorerVersion
from evals_app.scorers.cached_scorers import scorer_table
from evals_app.scorers.schema import reject_invalid_scorer
from versions_app.models.version import ACTIVE_VERSION_MESSAGE

EXPERIMENT_MESSAGE = "An experiment that has not ended uses this {what}. Wait until it ends, or cancel it."
ONLY_DRAFT_MESSAGE = "No version is live that could take the place of the draft. Publish one, or delete the scorer."
EXPERIMENT_COLUMNS = ("scorer_versions", "target_type", "target_id", "version_number")


def create_scorer(snapshot: JSONObject, *, owner_id: str, author: str, **fields: Any) -> Scorer:
    """Create a scorer with its version 1. Raise ConfigError, and Conflict for an ID that is taken."""
    reject_invalid_scorer(snapshot)
    scorer_id = fields.get("id") or derive_id(snapshot["name"])
    if registry.get(Kind.SCORER, scorer_id) is not None:
        raise Conflict(f"The ID '{scorer_id}' belongs to a scorer in code. Choose another ID.", "id_taken")
    try:
        with transaction.atomic():
            row = Scorer.objects.create(
                pk=scorer_id, owner_id=owner_id, metadata=fields.get("metadata") or {}, created_by=author
            )
            publish = fields.get("publish") is not False
            add_version(row, None, snapshot, author, fields.get("change_message") or "", publish)
    except IntegrityError:
        raise Conflict(f"The ID '{scorer_id}' is taken. Choose another ID.", "id_taken") from None
    return row


def lock_scorer(scorer_id: str) -> Scorer:
    """Return a scorer whose row is locked until the transaction ends. Raise NotFound if it was deleted."""
    row = Scorer.objects.select_for_update().filter(pk=scorer_id).first()
    if row is None:
        raise NotFound(f"Scorer {scorer_id} not found.")
    return row


@transaction.atomic
def delete_scorer(row: Scorer) -> None:
    """Delete a scorer with its versions.

    Raise Conflict if a gate or an experiment that has not ended uses it, or if another scorer has its ID since it was
    read.
    """
    locked = lock_scorer(row.pk)
    if locked.created_at != row.created_at:
        raise Conflict("The scorer was deleted meanwhile, and another one has its ID now.", "scorer_replaced")
    if reason := reason_to_keep(locked):
        raise Conflict(reason, "scorer_in_use")
    store_last_number(locked)
    locked.delete()
    scorer_table.invalidate_after_change()


def reason_to_keep(row: Scorer) -> str:
    """Return why a scorer cannot be deleted now, or a blank text.

    No version could meet its gate any more, and the other answers of its experiment would have no score.
    """
    if gates_with_scorer(row).exists():
        return "A release gate uses this scorer. Delete the gate first."
    return EXPERIMENT_MESSAGE.format(what="scorer") if versions_in_experiments(row) else ""


def gates_with_scorer(row: Scorer) -> QuerySet[ReleaseGate]:
    """Return the release gates that need scores of a scorer."""
    gates = ReleaseGate.objects.filter(scorer=row.pk)
    # Gates of other teams may name the same ID, but it does not resolve to this scorer.
    of_team = Q(agent__owner_id=row.owner_id) | Q(agent=None, owner_id=row.owner_id)  # an agent may have moved there
    return gates if row.owner_id == SHARED_OWNER else gates.filter(of_team)


def versions_in_experiments(row: Scorer) -> set[int]:
    """Return the numbers of the versions of a scorer that experiments score by, or test, and that have not ended."""
    # One that a program outside drives may never end, and would keep its scorers for ever. A cancelled one ends soon.
    experiments = Experiment.objects.unfinished().filter(is_external=False, cancel_requested_at=None)
    if row.owner_id != SHARED_OWNER:
        # Items of other teams may name the same ID, but it does not resolve to this scorer.
        experiments = experiments.filter(dataset__owner_id=row.owner_id)
    numbers: set[int] = set()
    for pinned, kind, key, number in experiments.values_list(*EXPERIMENT_COLUMNS):
        numbers |= {pinned[row.pk]} if row.pk in pinned else set()
        numbers |= {number} if (kind, key) == (Experiment.Target.SCORER, row.pk) else set()
    return numbers


def change_scorer(scorer_id: str, change: JSONObject, *, author: str, **fields: Any) -> Scorer:
    """Add a version with changed fields, which goes live unless `publish` is False. Raise ConfigError.

    What goes live starts from what is live: a draft is published by its version.
    """
    publish = fields.get("publish") is not False
    with transaction.atomic():
        row = lock_scorer(scorer_id)
        base = (row.live if publish else None) or row.head
        snapshot = {**(base.snapshot if base else {}), **change}
        reject_invalid_scorer(snapshot)
        if "metadata" in fields:
            row.metadata = fields["metadata"] or {}
        add_version(row, base, snapshot, author, fields.get("change_message") or "", publish)
    return row


@transaction.atomic
def change_draft(scorer_id: str, change: JSONObject, *, author: str, publish: bool, **fields: Any) -> None:
    """Change the fields of the draft, or begin one, and publish it if `publish` says so. Raise ConfigError."""
    row = change_scorer(scorer_id, change, author=author, **fields, publish=False)
    if publish and row.head is not None:
        activate_version(scorer_id, row.head)


def add_version(
    row: Scorer, base: ScorerVersion | None, snapshot: JSONObject, author: str, message: str, publish: bool
) -> None:
    """Add a version to a locked scorer and move its pointers. One that equals its base is not added."""
    version, before = base, base.snapshot if base else {}
    if version is None or not json_equal(before, snapshot):
        version = insert_version(row, snapshot, author, message, differing_fields(before, snapshot))
    row.head = version if base == row.head else row.head  # a draft ahead stays
    row.live = version if publish else row.live
    save_pointers(row)


def differing_fields(old: JSONObject, new: JSONObject) -> list[str]:
    """Return the names of the fields in which two configurations differ, in order."""
    # Not `!=`, by which true and 1 are equal in Python.
    return sorted(name for name in {*old, *new} if not json_equal(old.get(name), new.get(name)))


def insert_version(
    row: Scorer, snapshot: JSONObject, author: str, message: str, changed_fields: Sequence[str] = ()
) -> ScorerVersion:
    """Insert the next version of a locked scorer. The pointers stay as they are."""
    return ScorerVersion.objects.create(
        scorer=row,
        version_number=last_number(row) + 1,
        snapshot=snapshot,
        changed_fields=[*changed_fields],
        change_message=message,
        author_name=author,
    )


def last_number(row: Scorer) -> int:
    """Return the number of the last version of a scorer, or of a deleted one with its ID, or 0."""
    numbers = row.versions.values_list("version_number", flat=True)
    deleted = DeletedScorer.objects.filter(pk=row.pk).values_list("version_number", flat=True)
    return max(numbers.first() or 0, deleted.first() or 0)


def store_last_number(row: Scorer) -> None:
    """Store the number of the last version, so that no number is used twice after a deletion."""
    DeletedScorer.objects.update_or_create(pk=row.pk, defaults={"version_number": last_number(row)})


def copy_head(scorer_id: str, author: str, message: str) -> ScorerVersion:
    """Add a version with the newest configuration, as a mark in the history."""
    with transaction.atomic():
        row = lock_scorer(scorer_id)
        row.head = version = insert_version(row, row.head.snapshot if row.head else {}, author, message)
        save_pointers(row)
    return version


def save_pointers(row: Scorer) -> None:
    row.updated_at = timezone.now()
    row.save()
    scorer_table.invalidate_after_change()


def get_scorer_version(row: Scorer, version_id: str) -> ScorerVersion:
    """Return a version by its ID or number. Raise NotFound."""
    version = find_scorer_version(row, version_id)
    if version is None:
        raise NotFound(f"The scorer has no version {version_id}.")
    return version


def get_named_version(row: Scorer, name: str) -> ScorerVersion:
    """Return the live version or the head, `live` or `head`, else that of an ID or number. Raise NotFound."""
    pointers = {"live": row.live, "head": row.head}
    if name not in pointers:
        return get_scorer_version(row, name)
    version = pointers[name]
    if version is None:
        raise NotFound(f"The scorer has no version {name}.")
    return version


def find_scorer_version(row: Scorer, version_id: str) -> ScorerVersion | None:
    """Return a version by its ID or number, or None."""
    if key := parse_uuid(version_id):
        return row.versions.filter(pk=key).first()
    return row.versions.filter(version_number=parse_whole_number(version_id)).first()


def activate_version(scorer_id: str, version: ScorerVersion) -> Scorer:
    """Publish a version. Without a draft, changes start from it too. Raise NotFound if it was deleted meanwhile."""
    with transaction.atomic():
        row = lock_scorer(scorer_id)
        published = get_scorer_version(row, str(version.pk))  # read again: a deletion takes the same lock
        if row.head_id == row.live_id:  # or the next change would undo a roll-back
            row.head = published
        row.live = published
        save_pointers(row)
    return row


def add_restored_version(scorer_id: str, version: ScorerVersion, author: str) -> ScorerVersion:
    """Add a version with the configuration of an earlier one, and publish it. One of the head is added too."""
    with transaction.atomic():
        row = lock_scorer(scorer_id)
        changed = differing_fields(row.head.snapshot if row.head else {}, version.snapshot)
        message = f"Restored v{version.version_number}"
        row.live = row.head = insert_version(row, version.snapshot, author, message, changed)
        save_pointers(row)
    return row.live


@transaction.atomic
def return_head_to_live(scorer_id: str) -> ScorerVersion | None:
    """Let changes start from the live version again. Return the draft, or None if there is none, or none is live.

    The versions of the draft stay in the history.
    """
    row = lock_scorer(scorer_id)
    draft = row.head
    if row.live is None or row.head_id == row.live_id:
        return None
    row.head = row.live
    save_pointers(row)
    return draft


@transaction.atomic
def delete_version(row: Scorer, version: ScorerVersion) -> None:
    """Delete a version. If it is the head, the head returns to the live one. Raise ValidationError if it is live.

    Raise Conflict for a head without a live version, and for a version that an unfinished experiment uses.
    """
    locked = lock_scorer(row.pk)  # or the version could go live meanwhile
    if version.pk == locked.live_id:
        raise ValidationError(ACTIVE_VERSION_MESSAGE, code="active_version")
    if version.pk == locked.head_id and locked.live is None:
        raise Conflict(ONLY_DRAFT_MESSAGE, "in_use")
    if version.version_number in versions_in_experiments(locked):
        raise Conflict(EXPERIMENT_MESSAGE.format(what="version"), "in_use")
    store_last_number(locked)
    if version.pk == locked.head_id:
        locked.head = locked.live
        save_pointers(locked)
    version.delete()
