"""The clean-up of workspaces whose conversation or run is gone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from agentcms.ids import parse_uuid
from jobs_app.cleanup import cleanup_step
from memory_app.models import Thread
from runs_app.models import AgentRun

is_thread = re.compile(r"thread-(\d{1,18})").fullmatch


@cleanup_step
def delete_abandoned_workspaces() -> None:
    """Delete the folders of deleted conversations and runs. Named workspaces stay."""
    for folder in abandoned_folders():
        # Follows no links. Python would not delete folders that are nested a thousand times.
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False)


def abandoned_folders() -> Iterator[Path]:
    for folder in settings.WORKSPACES_DIR.glob("*/*"):
        if folder.is_symlink():
            continue
        if (match := is_thread(folder.name)) is not None:
            if not Thread.objects.filter(pk=int(match[1])).exists():
                yield folder
        elif folder.name.startswith("run-"):
            run_id = parse_uuid(folder.name.removeprefix("run-"))
            if run_id is not None and not AgentRun.objects.filter(pk=run_id).exists():
                yield folder
