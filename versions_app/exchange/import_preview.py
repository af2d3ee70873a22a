"""The check of a file on the page, before its user chooses between drafts and publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentcms.wire.json_types import JSONObject
from versions_app.exchange.records import Record, RecordOutcome, import_record

if TYPE_CHECKING:
    from django.contrib.auth.models import User

ONLY_PUBLISHED_NOTE = "Only its live version differs. “Import and publish” changes it."


def preview_record(record: Record, user: User, options: JSONObject) -> RecordOutcome:
    """Return what the import of a record as a draft does, with a note where publishing does something else.

    A change that only publishing makes counts as a change. Otherwise the page could not offer to import it.
    """
    outcome = import_record(record, user, options)
    if outcome.action not in ("update", "same"):
        return outcome
    published = import_record(record, user, {**options, "publish": True})
    if published.action == "refuse":
        return add_note(outcome, f"“Import and publish” rejects it: {published.reason}")
    if published.action != outcome.action:
        return add_note(published, ONLY_PUBLISHED_NOTE)
    return outcome._replace(warnings=[mark_of_draft(warning, published) for warning in outcome.warnings])


def mark_of_draft(warning: dict[str, str], published: RecordOutcome) -> dict[str, str]:
    """Return a warning of an import as a draft, with the name of its button if publishing has no such warning."""
    if warning in published.warnings:
        return warning
    return {**warning, "message": f"“Import changes as drafts”: {warning['message']}"}


def add_note(outcome: RecordOutcome, note: str) -> RecordOutcome:
    return outcome._replace(warnings=[{"field": "", "key": "", "message": note}, *outcome.warnings])
