"""An export or an import as its page tells it, read from the job's row."""

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
    "same": ("Same", "Same"),
    "refuse": ("Refuse", "Refused"),
}


class ActionCount(NamedTuple):
    action: str
    label: str
    number: int


class ReportLine(NamedTuple):
    """One record of a file: what became of it, why, what nothing registered of what it names, and the name of the
    agent where there is one to open."""

    number: int
    agent_id: str
    action: str
    label: str
    reason: str
    warnings: list[str]
    name: str | None


class Report:
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
    def sentence(self) -> str:
        """What it came to so far, for the list and for whoever does not look."""
        if self.job.state == Job.State.FAILED:
            return "It stopped with an error."
        if not self.is_over:
            return "Waiting for a worker." if self.job.state == Job.State.QUEUED else "Under way."
        if self.is_export:
            return f"{format_agent_count(self.result['records'])} exported."
        to = "to " if self.is_dry else ""
        told = [
            f"{each.number} {'the same' if each.action == 'same' else to + each.label.lower()}"
            for each in self.counts
            if each.number
        ]
        return f"{', '.join(told) or 'No records'}{'; nothing has changed yet' if self.is_dry and told else ''}."

    @property
    def has_file(self) -> bool:
        """Whether what an export wrote, or the file that was checked, is still there."""
        ending = "jsonl" if self.is_export else "upload"
        return self.is_done and (exchange_folder() / f"{self.job.pk}.{ending}").exists()

    @property
    def counts(self) -> list[ActionCount]:
        labels = {action: words[0 if self.is_dry else 1] for action, words in ACTION_LABELS.items()}
        return [ActionCount(action, label, self.result.get(action, 0)) for action, label in labels.items()]

    @property
    def wanting(self) -> int:
        """How many records there are to take in."""
        return int(self.result.get("create", 0)) + int(self.result.get("update", 0))

    @cached_property
    def records(self) -> Sequence[dict[str, Any]]:
        """The records that the result names, in the order of the file."""
        return self.result.get("records", []) if self.is_done and not self.is_export else []

    @property
    def unlisted(self) -> int:
        return max(0, sum(each.number for each in self.counts) - MAX_LISTED_RECORDS)

    def only(self, action: str) -> Sequence[dict[str, Any]]:
        return [each for each in self.records if each["action"] == action] if action in ACTION_LABELS else self.records


def report_lines(report: Report, records: Sequence[dict[str, Any]], agents: AgentQuerySet) -> list[ReportLine]:
    """These records as lines; `agents` are those that the reader may open."""
    ids = [each["id"] for each in records if "id" in each]
    names = dict(agents.filter(pk__in=ids).values_list("pk", "name"))
    labels = {each.action: each.label for each in report.counts}
    return [
        ReportLine(
            each["line"],
            each.get("id", ""),
            each["action"],
            labels[each["action"]],
            each.get("reason", ""),
            [warning["message"] for warning in each.get("warnings", ())],
            names.get(each.get("id", "")),
        )
        for each in records
    ]


def format_agent_count(count: int) -> str:
    return f"{count:,} agent{'' if count == 1 else 's'}"
