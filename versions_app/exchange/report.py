"""The report of an export or import job for its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from django.db.models import F, QuerySet

from agentcms.plural import pluralize
from agentcms.wire.json_types import JSONObject
from agents_app.models import AgentQuerySet
from jobs_app.models import Job, JobFile, JobQuerySet, ReportRow
from versions_app.exchange.export_job import EXPORT

ACTION_LABELS = {
    "create": ("Create", "Created"),
    "update": ("Change", "Changed"),
    "same": ("Unchanged", "Unchanged"),
    "refuse": ("Reject", "Rejected"),
}

LISTED_PARAMETERS = ("name", "dryRun")
LISTED_RESULTS = ("records", *ACTION_LABELS)


class ActionCount(NamedTuple):
    """The number of records with one outcome."""

    action: str
    label: str
    number: int


class ReportLine(NamedTuple):
    """A record of a file, with `new_name` of the file. `name` is None if the user cannot open the agent."""

    number: int
    agent_id: str
    action: str
    label: str
    reason: str
    warnings: list[str]
    name: str | None
    new_name: str


class JobReport:
    """Display values of an export or import job. Its parameters and its result are small; its records are rows."""

    def __init__(self, job: Job, parameters: JSONObject | None = None, result: JSONObject | None = None) -> None:
        """Use these parameters and this result, by default those of the job."""
        parameters = job.parameters if parameters is None else parameters
        self.job = job
        self.is_export = job.kind == EXPORT
        self.is_over = job.is_finished
        self.is_done = job.state == Job.State.DONE
        self.is_dry = bool(parameters.get("dryRun"))
        self.publishes = bool(parameters.get("publish"))
        self.file_name = str(parameters.get("name") or "a file")
        self.result: JSONObject = (job.result if result is None else result) or {}

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
            return f"{pluralize(self.result['records'], 'agent')} exported."
        # "2 to create" of a check, and "2 created" of an import.
        to = "to " if self.is_dry else ""
        parts = [
            f"{count.number} {'' if count.action == 'same' else to}{count.label.lower()}"
            for count in self.counts
            if count.number
        ]
        return f"{', '.join(parts) or 'No records'}{'; nothing has changed yet' if self.is_dry and parts else ''}."

    @cached_property
    def file(self) -> JobFile | None:
        """The exported or checked file, if it still exists."""
        return JobFile.objects.filter(job=self.job).first() if self.is_done else None

    @property
    def counts(self) -> list[ActionCount]:
        labels = {action: words[0 if self.is_dry else 1] for action, words in ACTION_LABELS.items()}
        return [ActionCount(action, label, self.result.get(action, 0)) for action, label in labels.items()]

    @property
    def importable_count(self) -> int:
        """The number of records that an import would create or change."""
        return int(self.result.get("create", 0)) + int(self.result.get("update", 0))

    @property
    def unlisted_count(self) -> int:
        """The number of records without a row in the report."""
        return max(0, sum(count.number for count in self.counts) - int(self.result.get("listed", 0)))

    def rows(self, action: str) -> QuerySet[ReportRow]:
        """Return the listed records with this action, or all for any other text, in the order of the file."""
        rows = self.job.report_rows.order_by("number") if self.is_done else ReportRow.objects.none()
        return rows.filter(action=action) if action in ACTION_LABELS else rows


def list_reports(jobs: JobQuerySet, count: int) -> list[JobReport]:
    """Return the first of these jobs with the values that a list shows, without loading large columns."""
    figures = {f"parameters_{name}": F(f"parameters__{name}") for name in LISTED_PARAMETERS}
    figures |= {f"result_{name}": F(f"result__{name}") for name in LISTED_RESULTS}
    return [
        JobReport(
            job,
            {name: getattr(job, f"parameters_{name}") for name in LISTED_PARAMETERS},
            {name: getattr(job, f"result_{name}") or 0 for name in LISTED_RESULTS},
        )
        for job in jobs.without_large_columns().annotate(**figures)[:count]
    ]


def report_lines(report: JobReport, rows: Sequence[ReportRow], agents: AgentQuerySet) -> list[ReportLine]:
    """Return display lines of rows. `agents` are those that the user may open."""
    ids = [row.content["id"] for row in rows if "id" in row.content]
    names = dict(agents.filter(pk__in=ids).values_list("pk", "name"))
    labels = {count.action: count.label for count in report.counts}
    return [
        ReportLine(
            row.number,
            row.content.get("id", ""),
            row.action,
            labels[row.action],
            row.content.get("reason", ""),
            [warning_text(warning) for warning in row.content.get("warnings", ())],
            names.get(row.content.get("id", "")),
            row.content.get("name", ""),
        )
        for row in rows
    ]


def warning_text(warning: Mapping[str, str]) -> str:
    """Return the message of a warning, with the path of what it does not name."""
    message = warning["message"]
    return message if warning.get("key", "") in message else f"{warning['field']}: {message}"


def record_payload(row: ReportRow) -> JSONObject:
    """Return a row of the report in the API."""
    content = {name: value for name, value in row.content.items() if name not in ("ownerId", "name")}
    return {"line": row.number, "action": row.action, **content}
