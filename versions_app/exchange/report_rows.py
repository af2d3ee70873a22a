"""The rows of the report of an import, one for each record. Their number and size are limited."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import IO

from access_app.permissions import SHARED_OWNER
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.references import missing_reference_message
from agents_app.models import Agent
from agents_app.models.querysets import usable_owners
from jobs_app.models import Job, ReportRow
from versions_app.exchange.records import RecordOutcome

MAX_LISTED_RECORDS = 20_000  # of one report
MAX_REPORT_SIZE = 16 << 20  # bytes of one report
MAX_REPORTED_ID_LENGTH = 200
MAX_REPORTED_TEXT_LENGTH = 2000
ROW_BATCH_SIZE = 500
OUTCOME_LOG = "told"  # key of a cursor and suffix of a file of release 0.1


class ReportWriter:
    """Adds outcomes to the report of an import, in the transaction of each record."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.listed = job.report_rows.count()  # those of an earlier worker
        self.size = job.report_size

    def add(self, number: int, outcome: RecordOutcome, name: str) -> None:
        """Add the outcome of a line with the name of its agent, if it fits."""
        content = row_content(outcome, name)
        size = len(json.dumps(content))
        if self.listed >= MAX_LISTED_RECORDS or self.size + size > MAX_REPORT_SIZE:
            return
        ReportRow.objects.create(job=self.job, number=number, action=outcome.action, content=content)
        self.listed += 1
        self.size += size


def adopt_outcome_log(job: Job, log: IO[bytes], size: int) -> None:
    """Store the outcomes that a worker of release 0.1 wrote to a file. Further bytes were not committed."""
    outcomes = [json.loads(line) for line in log.read(size).splitlines()]
    rows = [ReportRow(job=job, number=one.pop("line"), action=one.pop("action"), content=one) for one in outcomes]
    ReportRow.objects.bulk_create(rows, ROW_BATCH_SIZE, ignore_conflicts=True)


def row_content(outcome: RecordOutcome, name: str) -> JSONObject:
    """Return what a row stores, without what is blank. Texts that quote a file are truncated."""
    warnings = [
        {name: truncate_storable(text, MAX_REPORTED_ID_LENGTH) for name, text in warning.items()}
        for warning in outcome.warnings
    ]
    values: JSONObject = {
        "id": truncate_storable(outcome.id, MAX_REPORTED_ID_LENGTH),
        "name": truncate_storable(name, MAX_REPORTED_ID_LENGTH),
        "reason": truncate_storable(outcome.reason, MAX_REPORTED_TEXT_LENGTH),
        "code": outcome.code,
        "ownerId": outcome.owner_id,
        "warnings": warnings,
    }
    return {name: value for name, value in values.items() if value}


def truncate_storable(text: str, length: int) -> str:
    """Return the text with a limited length, without characters that a database rejects."""
    text = text if len(text) <= length else f"{text[: length - 1]}…"
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def drop_resolved_warnings(job: Job) -> None:
    """Remove the warnings about sub-agents that are stored after the import, or would be. Name archived ones."""
    imported = job.report_rows.exclude(action="refuse")
    owner_of = {
        agent_id: owner_id or SHARED_OWNER
        for agent_id, owner_id in imported.values_list("content__id", "content__ownerId").iterator()
    }
    for rows in batches_with_warnings(job):
        keys = {warning["key"] for row in rows for warning in row.content["warnings"] if is_agent_warning(warning)}
        archived = Agent.objects.archived().owners_of(keys)
        stored = owner_of | Agent.objects.without_archived().owners_of(keys)
        for row in rows:
            usable = usable_owners(owner_of.get(row.content.get("id", "")))
            drop_from_row(row, stored, archived, usable)
        ReportRow.objects.bulk_update(rows, ["content"])


def batches_with_warnings(job: Job) -> Iterator[list[ReportRow]]:
    after = 0
    rows = job.report_rows.filter(content__has_key="warnings").order_by("number")
    while batch := list(rows.filter(number__gt=after)[:ROW_BATCH_SIZE]):
        yield batch
        after = batch[-1].number


def drop_from_row(
    row: ReportRow, stored: dict[str, str], archived: dict[str, str], usable: Collection[str | None]
) -> None:
    """Remove the warnings about stored agents whose owner is usable. Name archived agents in the others."""
    remaining = []
    for warning in row.content.pop("warnings"):
        key, is_agent = warning["key"], is_agent_warning(warning)
        if is_agent and key in archived and archived[key] in usable:
            remaining.append({**warning, "message": missing_reference_message("agents", key, archived)})
        elif not (is_agent and key in stored and stored[key] in usable):
            remaining.append(warning)
    if remaining:
        row.content["warnings"] = remaining


def is_agent_warning(warning: dict[str, str]) -> bool:
    return warning["field"] == "agents"
