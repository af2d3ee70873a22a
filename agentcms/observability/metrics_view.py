"""The Prometheus endpoint: counters of all processes and gauges from the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.db.models import Count, Min, Sum
from django.http import HttpResponse
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from agentcms.observability.metrics import METRICS_DIR
from jobs_app.models import Heartbeat, Job, JobFile
from knowledge_app.models import Document
from memory_app.models import Thread
from memory_app.observational.jobs import OBSERVE_THREAD
from memory_app.recall.indexing import INDEX_KINDS
from runs_app.models import AgentRun, BackgroundTask, PendingCall
from versions_app.integrity.check import CHECK_HISTORY

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class DatabaseCollector:
    """A collector of gauges from the database."""

    def collect(self) -> Iterator[Metric]:
        yield self.jobs()
        yield self.oldest()
        yield self.runs()
        yield self.background_tasks()
        yield self.oldest_queued_run()
        yield from self.approvals()
        yield from self.threads()
        backlog = Job.objects.unfinished().filter(kind__in=INDEX_KINDS).count()
        yield gauge("agentcms_index_backlog", "Jobs that wait to index messages, or do so now.", backlog)
        yield from self.observations()
        yield from self.knowledge()
        yield gauge("agentcms_jobs_late", "Jobs that are overdue or whose worker died.", Job.objects.late().count())
        file_bytes = JobFile.objects.aggregate(size=Sum("size"))["size"] or 0
        yield gauge("agentcms_job_file_bytes", "Size of the files of exports and imports.", file_bytes)
        report_bytes = Job.objects.aggregate(size=Sum("report_size"))["size"] or 0
        yield gauge("agentcms_job_report_bytes", "Size of the reports of imports.", report_bytes)
        yield from self.heartbeats()
        checks = Job.objects.filter(kind=CHECK_HISTORY, state=Job.State.DONE).order_by("-created_at")
        # Not the whole result, which may list a thousand faults.
        if last_check := checks.values_list("result__found", "result__repaired").first():
            unrepaired = last_check[0] - last_check[1]
            yield gauge("agentcms_history_faults", "Unrepaired faults of the last history check.", unrepaired)

    def heartbeats(self) -> Iterator[Metric]:
        if (age := Heartbeat.age(Heartbeat.BEAT)) is not None:
            yield gauge("agentcms_beat_age_seconds", "Time since the last heartbeat of beat.", age.total_seconds())
        if (age := Heartbeat.age(Heartbeat.RUN_WORKER)) is not None:
            text = "Time since the last heartbeat of a worker that executes durable runs."
            yield gauge("agentcms_run_worker_age_seconds", text, age.total_seconds())

    def jobs(self) -> Metric:
        family = GaugeMetricFamily("agentcms_jobs", "Jobs by kind and state.", labels=["kind", "state"])
        for kind, state, count in Job.objects.order_by().values_list("kind", "state").annotate(Count("pk")):
            family.add_metric([kind, state], count)
        return family

    def runs(self) -> Metric:
        family = GaugeMetricFamily("agentcms_runs_open", "Runs that have not ended.", labels=["status"])
        for status, count in AgentRun.objects.leased().order_by().values_list("status").annotate(Count("pk")):
            family.add_metric([status], count)
        if suspended := AgentRun.objects.filter(suspended_at__isnull=False).count():
            family.add_metric([AgentRun.Status.SUSPENDED], suspended)
        return family

    def oldest_queued_run(self) -> Metric:
        since = AgentRun.objects.queued().aggregate(since=Min("created_at"))["since"]
        text = "Age of the oldest run that waits for a process."
        return gauge("agentcms_run_queued_oldest_seconds", text, seconds_since(since))

    def approvals(self) -> Iterator[Metric]:
        waiting = PendingCall.objects.waiting().exclude(kind=PendingCall.Kind.CHILD).order_by()
        figures = waiting.aggregate(count=Count("pk"), since=Min("created_at"))
        yield gauge("agentcms_approvals_open", "Calls that wait for a person.", figures["count"])
        text = "Age of the oldest call that waits for a person."
        yield gauge("agentcms_approval_oldest_seconds", text, seconds_since(figures["since"]))

    def threads(self) -> Iterator[Metric]:
        figures = Thread.objects.order_by().aggregate(count=Count("pk"), messages=Sum("last_number"))
        yield gauge("agentcms_threads", "Stored threads.", figures["count"])
        # The numbers of the threads, because counting the messages themselves takes long.
        text = "Messages of the stored threads, with those that were deleted one by one."
        yield gauge("agentcms_thread_messages", text, figures["messages"] or 0)

    def background_tasks(self) -> Metric:
        family = GaugeMetricFamily(
            "agentcms_background_tasks", "Background tasks that have not ended.", labels=["status"]
        )
        unfinished = BackgroundTask.objects.unfinished().order_by()
        counts = dict(unfinished.values_list("status").annotate(Count("pk")))
        for status in BackgroundTask.UNFINISHED_STATUSES:
            family.add_metric([status], counts.get(status, 0))
        return family

    def observations(self) -> Iterator[Metric]:
        figures = (
            Job.objects.unfinished()
            .filter(kind=OBSERVE_THREAD)
            .order_by()
            .aggregate(count=Count("pk"), since=Min("created_at"))
        )
        yield gauge("agentcms_observe_backlog", "Jobs that wait to observe threads, or do so now.", figures["count"])
        text = "Age of the oldest job that observes a thread."
        yield gauge("agentcms_observation_lag_seconds", text, seconds_since(figures["since"]))

    def knowledge(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("agentcms_knowledge_documents", "Documents by state.", labels=["state"])
        for status, count in Document.objects.order_by().values_list("status").annotate(Count("pk")):
            family.add_metric([status], count)
        yield family
        since = Document.objects.waiting().aggregate(since=Min("created_at"))["since"]
        text = "Age of the oldest document that is not indexed yet."
        yield gauge("agentcms_knowledge_oldest_seconds", text, seconds_since(since))

    def oldest(self) -> Metric:
        family = GaugeMetricFamily("agentcms_job_oldest_seconds", "Age of the oldest job.", labels=["state"])
        unfinished = Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING]).order_by()
        for state, since in unfinished.values_list("state").annotate(Min("created_at")):
            family.add_metric([state], seconds_since(since))
        return family


def seconds_since(time: datetime | None) -> float:
    """Return the age of a row that was created at a time, in seconds: 0 without a row."""
    return (timezone.now() - time).total_seconds() if time is not None else 0


def gauge(name: str, documentation: str, value: float) -> Metric:
    """Return a gauge without labels."""
    family = GaugeMetricFamily(name, documentation)
    family.add_metric([], value)
    return family


def render_metrics() -> bytes:
    """Return all metrics in the text format of Prometheus."""
    # The default registry knows the counters of this process alone.
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(METRICS_DIR))
    registry.register(DatabaseCollector())
    return generate_latest(registry)


class CanReadMetrics(BasePermission):
    """Permission for staff and for direct connections from METRICS_ALLOW."""

    def has_permission(self, request: Request, view: object) -> bool:
        return bool(
            is_from_network(request, settings.METRICS_ALLOW) or (request.user.is_active and request.user.is_staff)
        )


def is_from_network(request: Request, networks: Iterable[Any]) -> bool:
    """Return True if the request comes from one of the networks and not through a proxy."""
    # A proxy inside of the network forwards requests from anywhere.
    if request.headers.get("X-Forwarded-For") or request.headers.get("Forwarded"):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in networks)


class MetricsView(APIView):
    """The view of `GET /metrics`."""

    permission_classes = (CanReadMetrics,)
    schema = None

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        # Always this format: the only renderer is that of JSON, so DRF would answer 406 to a client that accepts text.
        return super().perform_content_negotiation(request, force=True)

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(render_metrics(), CONTENT_TYPE)
