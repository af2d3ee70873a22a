"""What is counted for Prometheus, in every process of this machine.

Each process counts in files of its own below DATA_DIR/metrics; `agentcms.figures` reads them together.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_save

FOLDER: Path = settings.DATA_DIR / "metrics"
with suppress(OSError):  # `manage.py check` says what is wrong with a folder that cannot be written to
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(FOLDER)

from prometheus_client import Counter, Histogram  # noqa: E402  it reads the folder as it loads

from runs_app.leases import ended  # noqa: E402
from versions_app.models import Activation, AgentVersion  # noqa: E402
from versions_app.retention import pruned  # noqa: E402

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

REQUESTS = Counter("agentcms_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram("agentcms_request_seconds", "Time to answer.", ["method", "route"], buckets=BUCKETS)
CONFLICTS = Counter("agentcms_conflicts", "Requests refused because somebody else was there first.", ["status"])
THROTTLED = Counter("agentcms_throttled", "Requests refused because there were too many.", ["route"])
VERSIONS = Counter("agentcms_versions", "Versions made.", ["source"])
ACTIVATIONS = Counter("agentcms_activations", "Moves of what is live.", ["source"])
RUNS = Counter("agentcms_runs_ended", "Runs that are over.", ["status"])
PRUNED = Counter("agentcms_versions_pruned", "Versions removed by retention.", ["process"])


def count_kept(counter: Counter, instance: Any, created: bool, **kwargs: Any) -> None:
    """Count a new row once it is committed."""
    if created:
        transaction.on_commit(counter.labels(instance.source).inc)


def count_pruned(count: int, **kwargs: Any) -> None:
    transaction.on_commit(partial(PRUNED.labels("versions").inc, count))


def count_run(status: str, **kwargs: Any) -> None:
    RUNS.labels(status).inc()


def listen() -> None:
    """Count what the history makes and removes, and how runs end."""
    post_save.connect(partial(count_kept, VERSIONS), sender=AgentVersion, weak=False, dispatch_uid="count-versions")
    post_save.connect(partial(count_kept, ACTIVATIONS), sender=Activation, weak=False, dispatch_uid="count-moves")
    pruned.connect(count_pruned, dispatch_uid="count-pruned")
    ended.connect(count_run, dispatch_uid="count-runs")


def forget_the_dead() -> None:
    """Remove the files of processes that are gone, at a start."""
    for path in FOLDER.glob("*.db"):
        if not Path("/proc", path.stem.rpartition("_")[2]).exists():
            with suppress(FileNotFoundError):
                path.unlink()
