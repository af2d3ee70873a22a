"""The command that prunes the versions of all agents."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentcms.wire.json_types import JSONObject
from jobs_app import runner
from versions_app.pruning import PRUNE


class Command(BaseCommand):
    help = "Prunes every agent to the version limit in this process, as a job that the admin shows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--limit", type=int, help="number of versions to keep per agent, instead of AGENT_VERSION_LIMIT"
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="list the versions that would be removed and the reasons for keeping others",
        )

    def handle(self, *args: object, limit: int | None, dry_run: bool, **options: object) -> None:
        if limit is not None and limit < 1:
            raise CommandError("--limit must be at least 1.")
        job = runner.run_now(PRUNE, {"limit": limit, "dryRun": dry_run})
        if not isinstance(job.result, dict):
            raise CommandError(f"The job failed: {job.error or 'another worker took it over'}")
        self._report(job.result) if dry_run else self.stdout.write(f"Removed {job.result['removed']} versions.")

    def _report(self, result: JSONObject) -> None:
        for version in result["versions"]:
            self.stdout.write(f"would remove: {version['agentId']} v{version['versionNumber']}")
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(result["kept"].items()))
        self.stdout.write(f"Would remove {result['surplus']} versions and keep: {reasons or 'none'}.")
