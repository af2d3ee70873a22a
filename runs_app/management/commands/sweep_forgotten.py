"""The command that deletes what a restored backup has brought back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agentcms.plural import pluralize
from agentcms.wire.timestamps import format_timestamp, parse_timestamp
from jobs_app import runner
from memory_app.models import Forgotten
from runs_app.privacy.forgetting import FORGET, delete_restored_copies, restored_resources


class Command(BaseCommand):
    help = (
        "Deletes the data of forgotten resources again, after a backup was restored. Reads the list of them from the "
        "standard input. Save it with every backup, and before you restore one: "
        "sweep_forgotten --list > forgotten.jsonl"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--list", action="store_true", help="only print the hashes of the forgotten resources")

    def handle(self, *args: object, **options: Any) -> None:
        if options["list"]:
            for digest, time in known_forgotten().items():
                self.stdout.write(json.dumps({"digest": digest, "forgottenAt": format_timestamp(time)}))
            return
        forgotten = known_forgotten() | dict(read_forgotten(() if sys.stdin.isatty() else sys.stdin))
        resources = [*restored_resources(forgotten)]
        for realm, resource in resources:
            job = runner.run_now(FORGET, {"realm": realm, "resource": resource, "by": "sweep after a backup"})
            if not isinstance(job.result, dict):
                raise CommandError(f"The job failed: {job.error or 'another worker took it over'}")
        others = sum(delete_restored_copies(digest, time) > 0 for digest, time in forgotten.items())
        self.stdout.write(f"Deleted the data of {pluralize(len(resources) + others, 'resource')}.")


def known_forgotten() -> dict[str, datetime]:
    """Return the times of the forgotten resources by hash."""
    return dict(Forgotten.objects.order_by("pk").values_list("digest", "forgotten_at"))


def read_forgotten(lines: Iterable[str]) -> Iterator[tuple[str, datetime]]:
    """Yield the hashes and times of a list. Raise CommandError."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield str(row["digest"]), parse_timestamp(row["forgottenAt"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CommandError(f"Line {number} is not one of sweep_forgotten --list.") from None
