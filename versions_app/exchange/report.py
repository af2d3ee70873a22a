"""The report of an export or import job for its page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from agents_app.models import AgentQuerySet
from jobs_app.models import Job
from versions_app.exchange.jobs import EXPORT, MAX_LISTED_RECORDS, exchange_folder

ACTION_LABELS = {
    "create": ("Create", "Created"),
    "update": ("Change", "Changed"),
    "same": ("Unchanged", "Unchanged"),
    "refuse": ("Reject", "Rejected"),
}


class ActionCount(NamedTuple):
    """The number of records with one outcome."""

    action: str
    label: str
    number: int


class ReportLine(NamedTuple):
    """A record of a file with its outcome. `name` is None if the user cannot open the agent."""

    number: int
    agent_id: str
    action: str
    label: str
    reason: str
    warnings: list[str]
    name: str | None


class Report:
    """Display values of an export or import job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.is_export = job.kind == EXPORT
        self.is_over = job.state in (Job.State.DONE, Job.State.FAILED)
        self.is_done = job.state == Job.State.DONE
        self.is_dry = bool(job.parameters.get("dryRun"))
        self.publishes = bool(job.parameters.get("publish"))
        self.file_name = str(job.parameters.get("name") or "a file")
        self.result: dict[str, Any] = job.result or {}

    @property
    def title(self) -> str:
        if self.is_export:
            return "Export of agents"
        return f"{'Check' if self.is_dry else 'Import'} of {self.file_name}"

    @property
    def summary(self) -> str:
        """A sentence on the state or the result of the job."""
        if self.job.state == Job.State.FAILED:
            return "The job failed."
        if not self.is_over:
            return "Waiting for a worker." if self.job.state == Job.State.QUEUED else "Running."
        if self.is_export:
            return f"{format_agent_count(self.result['records'])} exported."
        to = "to " if self.is_dry else ""
        parts = [
            f"{count.number} {'' if count.action == 'same' else to}{count.label.lower()}"
            for count in self.counts
            if count.number
        ]
        return f"{', '.join(parts) or 'No records'}{'; nothing has changed yet' if self.is_dry and parts else ''}."

    @property
    def has_file(self) -> bool:
        """True if the exported or checked file still exists."""
        suffix = "jsonl" if self.is_export else "upload"
        return self.is_done and (exchange_folder() / f"{self.job.pk}.{suffix}").exists()

    @property
    def counts(self) -> list[ActionCount]:
        labels = {action: words[0 if self.is_dry else 1] for action, words in ACTION_LABELS.items()}
        return [ActionCount(action, label, self.result.get(action, 0)) for action, label in labels.items()]

    @property
    def importable_count(self) -> int:
        """The number of records that an import would create or change."""
        return int(self.result.get("create", 0)) + int(self.result.get("update", 0))

    @cached_property
    def records(self) -> Sequence[dict[str, Any]]:
        """The records that the result lists, in the order of the file."""
        return self.result.get("records", []) if self.is_done and not self.is_export else []

    @property
    def unlisted_count(self) -> int:
        return max(0, sum(count.number for count in self.counts) - MAX_LISTED_RECORDS)

    def with_action(self, action: str) -> Sequence[dict[str, Any]]:
        return (
            [record for record in self.records if record["action"] == action]
            if action in ACTION_LABELS
            else self.records
        )


def report_lines(report: Report, records: Sequence[dict[str, Any]], agents: AgentQuerySet) -> list[ReportLine]:
    """Return display lines of records. `agents` are those that the user may open."""
    ids = [record["id"] for record in records if "id" in record]
    names = dict(agents.filter(pk__in=ids).values_list("pk", "name"))
    labels = {count.action: count.label for count in report.counts}
    return [
        ReportLine(
            record["line"],
            record.get("id", ""),
            record["action"],
            labels[record["action"]],
            record.get("reason", ""),
            [warning["message"] for warning in record.get("warnings", ())],
            names.get(record.get("id", "")),
        )
        for record in records
    ]


def format_agent_count(count: int) -> str:
    return f"{count:,} agent{'' if count == 1 else 's'}"
