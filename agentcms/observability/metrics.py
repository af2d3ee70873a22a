"""Prometheus counters of all processes of this machine.

Each process counts in its own files below DATA_DIR/metrics; `metrics_view` adds them up.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_save

METRICS_DIR: Path = settings.DATA_DIR / "metrics"
with suppress(OSError):  # `manage.py check` reports a folder that is not writable
    METRICS_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIR)

from prometheus_client import Counter, Histogram, values  # noqa: E402  reads the variable when it is imported

from access_app.throttling.limiter import counting_alone  # noqa: E402
from agentcms.tracing.drop_signal import spans_dropped  # noqa: E402
from memory_app.recall.recall_signal import messages_recalled  # noqa: E402
from runs_app.approvals.approval_signals import approval_decided  # noqa: E402
from runs_app.background.end_signal import task_ended  # noqa: E402
from runs_app.engine.leases import host_name  # noqa: E402
from runs_app.engine.run_ends import run_ended, run_requeued  # noqa: E402
from runs_app.models import PendingCall  # noqa: E402
from runs_app.response_cache.store import answer_looked_up  # noqa: E402
from tools_app.acp.call_signal import acp_prompted  # noqa: E402
from tools_app.mcp.call_signal import mcp_called  # noqa: E402
from versions_app.models import Activation, AgentVersion  # noqa: E402
from versions_app.retention import pruned  # noqa: E402

log = logging.getLogger(__name__)

FILE_SIZE = 1 << 20  # the size that prometheus_client maps for each file
MAX_SILENCE = 24 * 3600  # seconds without a change after which the file of another container is removed
MEMORY_DIR = "/dev/shm"  # noqa: S108
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


def process_name() -> str:
    """Return a name that no other process with this DATA_DIR has. The first process of each container has the ID 1."""
    return f"{host_name()}.{os.getpid()}"


values.ValueClass = values.MultiProcessValue(process_name)  # type: ignore[no-untyped-call]

REQUESTS = Counter("agentcms_requests", "HTTP requests.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram("agentcms_request_seconds", "Response time.", ["method", "route"], buckets=BUCKETS)
CONFLICTS = Counter("agentcms_conflicts", "Requests rejected because of a concurrent change.", ["status"])
THROTTLED = Counter("agentcms_throttled", "Requests rejected by a throttle.", ["route"])
UNSHARED_THROTTLES = Counter(
    "agentcms_throttles_alone", "Failures to share throttle counts between processes.", ["throttle"]
)
VERSIONS = Counter("agentcms_versions", "Versions created.", ["source"])
ACTIVATIONS = Counter("agentcms_activations", "Versions published.", ["source"])
RUNS = Counter("agentcms_runs_ended", "Runs that ended.", ["status"])
TAKEN_OVER = Counter(
    "agentcms_runs_taken_over", "Durable runs that were queued again: their process was lost, or stopped.", ["reason"]
)
TASKS = Counter("agentcms_background_tasks_ended", "Background tasks that ended.", ["status"])
CACHED_ANSWERS = Counter("agentcms_response_cache", "Lookups of answers in the response cache.", ["result"])
APPROVALS = Counter("agentcms_approvals_decided", "Calls that waited for people and were decided.", ["state", "via"])
MCP_CALLS = Counter("agentcms_mcp_calls", "Calls of tools of MCP servers.", ["server", "outcome"])
MCP_SECONDS = Histogram("agentcms_mcp_call_seconds", "Time of calls of MCP servers.", ["server"], buckets=BUCKETS)
ACP_PROMPTS = Counter("agentcms_acp_prompts", "Prompts to ACP agents.", ["agent", "outcome"])
ACP_SECONDS = Histogram(
    "agentcms_acp_prompt_seconds", "Time of prompts to ACP agents.", ["agent"], buckets=(0.5, 1, 5, 10, 30, 60, 300)
)
DROPPED_SPANS = Counter("agentcms_spans_dropped", "Spans of traces that were not exported.", ["reason"])
RECALLS = Counter("agentcms_recalls", "Recalls of earlier messages by runs.", ["outcome"])
PRUNED = Counter("agentcms_versions_pruned", "Versions removed by retention.", ["process"])


@cache
def recall_seconds() -> Histogram:
    """Return the histogram of recalls.

    Without a label, it maps the file of this process as soon as it exists: on a full disk that kills a process which
    has not called `reserve_files`.
    """
    return Histogram("agentcms_recall_seconds", "Time of a recall with its embedding.", buckets=BUCKETS)


def count_created(counter: Counter, instance: Any, created: bool, raw: bool = False, **kwargs: Any) -> None:
    """Count a new row once it is committed. Rows of a fixture or of the trash are not new."""
    if created and not raw:
        transaction.on_commit(counter.labels(instance.source).inc)


def count_pruned(count: int, **kwargs: object) -> None:
    transaction.on_commit(partial(PRUNED.labels("versions").inc, count))


def count_unshared_throttle(throttle: str, **kwargs: object) -> None:
    UNSHARED_THROTTLES.labels(throttle).inc()


def count_run(status: str, **kwargs: object) -> None:
    RUNS.labels(status).inc()


def count_task(status: str, **kwargs: object) -> None:
    TASKS.labels(status).inc()


def count_take_over(reason: str, **kwargs: object) -> None:
    TAKEN_OVER.labels(reason).inc()


def count_lookup(result: str, **kwargs: object) -> None:
    CACHED_ANSWERS.labels(result).inc()


def count_decision(call: PendingCall, **kwargs: object) -> None:
    APPROVALS.labels(call.state, call.via).inc()


def count_mcp_call(server: str, outcome: str, seconds: float, **kwargs: object) -> None:
    MCP_CALLS.labels(server, outcome).inc()
    MCP_SECONDS.labels(server).observe(seconds)


def count_acp_prompt(agent: str, outcome: str, seconds: float, **kwargs: object) -> None:
    ACP_PROMPTS.labels(agent, outcome).inc()
    ACP_SECONDS.labels(agent).observe(seconds)


def count_dropped_spans(count: int, reason: str, **kwargs: object) -> None:
    DROPPED_SPANS.labels(reason).inc(count)


def count_recall(outcome: str, seconds: float, **kwargs: object) -> None:
    RECALLS.labels(outcome).inc()
    recall_seconds().observe(seconds)


def connect_signals() -> None:
    """Count versions, activations, runs, approvals and throttles without the cache from their signals."""
    spans_dropped.connect(count_dropped_spans, dispatch_uid="count-dropped-spans")
    # Not weak: nothing else refers to a partial, which would be gone at once.
    post_save.connect(partial(count_created, VERSIONS), sender=AgentVersion, weak=False, dispatch_uid="count-versions")
    post_save.connect(partial(count_created, ACTIVATIONS), sender=Activation, weak=False, dispatch_uid="count-moves")
    pruned.connect(count_pruned, dispatch_uid="count-pruned")
    counting_alone.connect(count_unshared_throttle, dispatch_uid="count-alone")
    mcp_called.connect(count_mcp_call, dispatch_uid="count-mcp-calls")
    messages_recalled.connect(count_recall, dispatch_uid="count-recalls")
    acp_prompted.connect(count_acp_prompt, dispatch_uid="count-acp-prompts")
    run_ended.connect(count_run, dispatch_uid="count-runs")
    task_ended.connect(count_task, dispatch_uid="count-tasks")
    approval_decided.connect(count_decision, dispatch_uid="count-decisions")
    run_requeued.connect(count_take_over, dispatch_uid="count-take-overs")
    answer_looked_up.connect(count_lookup, dispatch_uid="count-lookups")


def reserve_files() -> None:
    """Allocate the files of this process before they are mapped. On a full disk, count in memory instead.

    Writing to a mapped page kills the process if the disk has no space for it.
    """
    try:
        for kind in ("counter", "histogram"):
            with (METRICS_DIR / f"{kind}_{process_name()}.db").open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, FILE_SIZE)
    except OSError as reason:
        log.warning("This process counts in memory; /metrics does not include it: %s.", reason)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = mkdtemp(dir=MEMORY_DIR if Path(MEMORY_DIR).is_dir() else None)


def remove_files_of_dead_processes() -> None:
    """Remove the files of processes that no longer run. Called at start-up."""
    for path in METRICS_DIR.glob("*.db"):
        with suppress(FileNotFoundError):
            if not may_be_in_use(path):
                path.unlink()


def may_be_in_use(path: Path) -> bool:
    """Return whether the process of a file runs, or may run in another container."""
    host, _, process_id = path.stem.partition("_")[2].rpartition(".")
    if host in ("", host_name()):  # earlier releases named no host
        return Path("/proc", process_id).exists()
    return time.time() - path.stat().st_mtime < MAX_SILENCE
