"""The Prometheus metrics and access to them."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.core.cache import cache
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from agentcms.observability import metrics
from agentcms.observability.middleware import RequestLogMiddleware
from agentcms.rate import Rate
from agentcms.server.processes import PROJECT
from agentcms.tracing import spans, tracer_provider
from jobs_app.models import Heartbeat, Job, JobFile
from memory_app.observational.jobs import OBSERVE_THREAD
from memory_app.recall.indexing import INDEX_MESSAGES
from memory_app.recall.recall_signal import messages_recalled
from runs_app.approvals.approval_signals import approval_decided
from runs_app.engine.run_ends import run_requeued
from runs_app.models import AgentRun, PendingCall
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.served import free_port, wait_until
from versions_app.integrity.check import CHECK_HISTORY

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client):
    client.force_login(UserFactory(is_staff=True))
    return client


def read_metric(client, name, **labels):
    """Return the value of a metric, or 0 where it does not exist."""
    text = client.get("/metrics").content.decode()
    for line in text.splitlines():
        if line.startswith(name) and all(f'{key}="{value}"' in line for key, value in labels.items()):
            return float(line.rpartition(" ")[2])
    return 0


def test_requests_are_counted_by_route_and_status(staff):
    route = {"method": "GET", "route": "api/stored/agents/<str:agent_id>", "status": "404"}
    before = read_metric(staff, "agentcms_requests_total", **route)

    staff.get("/api/stored/agents/nobody")
    staff.get("/api/stored/agents/nothing")

    assert read_metric(staff, "agentcms_requests_total", **route) == before + 2


def test_threads_and_their_messages_are_metrics(staff):
    user = member("editor")
    before = [read_metric(staff, name) for name in ("agentcms_threads ", "agentcms_thread_messages ")]

    add_thread(user, "first")
    add_thread(user, "second", texts=[("user", "Hello")])

    after = [read_metric(staff, name) for name in ("agentcms_threads ", "agentcms_thread_messages ")]
    assert (before, after) == ([0, 0], [2, 3])


def test_the_size_of_job_files_and_reports_is_a_metric(staff):
    for size in (100, 23):
        job = Job.objects.create(kind="import_agents", report_size=size)
        JobFile.objects.create(job=job, name=f"{job.pk}.upload", size=size * 10)

    assert read_metric(staff, "agentcms_job_file_bytes") == 1230
    assert read_metric(staff, "agentcms_job_report_bytes") == 123


def test_throttles_without_the_cache_are_counted(staff, settings, monkeypatch):
    def away(*args):
        raise ConnectionError

    settings.API_THROTTLE = Rate(20, 3600)  # a period without sampling
    caller = Client(headers={"Authorization": f"Bearer {api_key(member('viewer'))}"})
    before = read_metric(staff, "agentcms_throttles_alone_total", throttle="calls")

    with monkeypatch.context() as patch:
        patch.setattr(cache, "add", away)
        caller.get("/api/stored/agents")

    assert read_metric(staff, "agentcms_throttles_alone_total", throttle="calls") == before + 1


def test_unknown_methods_share_one_label(rf):
    middleware = RequestLogMiddleware(lambda request: HttpResponse())

    for number in range(5):
        middleware(rf.generic(f"X{number}", "/"))

    assert [method for method, *_ in middleware.counters] == ["other"]


def test_versions_and_activations_are_counted_once_committed(staff, django_capture_on_commit_callbacks):
    before = [read_metric(staff, f"agentcms_{name}_total", source="code") for name in ("versions", "activations")]

    with django_capture_on_commit_callbacks(execute=True):
        AgentFactory().edit({"name": "Porter"})

    after = [read_metric(staff, f"agentcms_{name}_total", source="code") for name in ("versions", "activations")]
    assert after == [count + 2 for count in before]


def test_pruned_versions_are_counted(staff, settings, django_capture_on_commit_callbacks):
    settings.AGENT_VERSION_LIMIT = 5
    before = read_metric(staff, "agentcms_versions_pruned_total")

    with django_capture_on_commit_callbacks(execute=True):
        agent = AgentFactory()
        for number in range(7):
            agent.edit({"name": f"Edit {number}"})

    assert read_metric(staff, "agentcms_versions_pruned_total") == before + 3


def test_conflicts_are_counted(staff):
    staff.force_login(UserFactory(is_staff=True, is_superuser=True))
    AgentFactory(id="taken")
    body = {"id": "taken", "name": "Taken", "instructions": "", "model": {"provider": "demo", "name": "echo"}}
    before = read_metric(staff, "agentcms_conflicts_total", status="409")

    staff.post("/api/stored/agents", body, content_type="application/json")

    assert read_metric(staff, "agentcms_conflicts_total", status="409") == before + 1


def test_throttled_requests_are_counted(staff, settings):
    settings.API_THROTTLE = Rate(1, 10**9)  # seconds; no window of this length ends before 2033
    caller = Client(headers={"Authorization": f"Bearer {api_key(member('viewer'))}"})
    route = {"route": "api/stored/agents"}
    before = read_metric(staff, "agentcms_throttled_total", **route)

    answers = [caller.get("/api/stored/agents").status_code for _ in range(3)]
    settings.API_THROTTLE = None  # it is part of the metrics endpoint

    assert answers[-1] == 429
    assert read_metric(staff, "agentcms_throttled_total", **route) == before + answers.count(429)


def test_a_stale_edit_is_counted_as_conflict(staff):
    staff.force_login(UserFactory(is_staff=True, is_superuser=True))
    AgentFactory(id="porter")
    before = read_metric(staff, "agentcms_conflicts_total", status="412")

    staff.patch(
        "/api/stored/agents/porter", {"name": "Late"}, content_type="application/json", headers={"if-match": '"0"'}
    )

    assert read_metric(staff, "agentcms_conflicts_total", status="412") == before + 1


def test_the_duration_of_every_response_is_measured(staff):
    before = read_metric(staff, "agentcms_request_seconds_count", route="healthz")

    staff.get("/healthz")

    assert read_metric(staff, "agentcms_request_seconds_count", route="healthz") == before + 1


def test_the_heartbeat_age_and_history_faults_are_measured(staff):
    Heartbeat.objects.create(name=Heartbeat.BEAT, at=timezone.now() - timedelta(hours=1))
    Job.objects.create(kind=CHECK_HISTORY, state=Job.State.DONE, result={"found": 3, "repaired": 1})

    assert read_metric(staff, "agentcms_beat_age_seconds") >= 3600
    assert read_metric(staff, "agentcms_history_faults") == 2


def test_runs_are_counted_by_state_with_the_age_of_the_oldest_queued_one(staff):
    Heartbeat.objects.create(name=Heartbeat.RUN_WORKER, at=timezone.now() - timedelta(minutes=1))
    row = {"agent_key": "porter", "configuration": {}, "input": {}, "is_durable": True}
    AgentRun.objects.create(**row, created_at=timezone.now() - timedelta(minutes=2))
    AgentRun.objects.create(**row, status="running")
    AgentRun.objects.create(**row, status="suspended", suspended_at=timezone.now())

    states = ("queued", "running", "suspended")
    assert [read_metric(staff, "agentcms_runs_open", status=state) for state in states] == [1, 1, 1]
    assert 120 <= read_metric(staff, "agentcms_run_queued_oldest_seconds") < 3600
    assert 60 <= read_metric(staff, "agentcms_run_worker_age_seconds") < 3600


def test_calls_that_wait_for_people_and_decisions_are_measured(staff):
    run = AgentRun.objects.create(agent_key="porter", configuration={}, input={}, status="suspended")
    row = {"run": run, "root_id": run.pk, "segment": 0, "agent_key": "porter", "tool": "refund", "kind": "approval"}
    waiting = {"created_at": timezone.now() - timedelta(hours=2), "expires_at": timezone.now() + timedelta(days=1)}
    call = PendingCall.objects.create(**row, **waiting, call_id="a")
    PendingCall.objects.create(**row | {"kind": "child"}, **waiting, call_id="b")
    before = read_metric(staff, "agentcms_approvals_decided_total", state="approved", via="page")

    assert read_metric(staff, "agentcms_approvals_open") == 1
    assert read_metric(staff, "agentcms_approval_oldest_seconds") >= 7200
    call.state, call.via = "approved", "page"
    approval_decided.send(PendingCall, call=call)

    assert read_metric(staff, "agentcms_approvals_decided_total", state="approved", via="page") == before + 1


@pytest.mark.parametrize("reason", ["lost", "stopped"])
def test_durable_runs_that_are_taken_over_are_counted(staff, reason):
    before = read_metric(staff, "agentcms_runs_taken_over_total", reason=reason)

    run_requeued.send(AgentRun, reason=reason)

    assert read_metric(staff, "agentcms_runs_taken_over_total", reason=reason) == before + 1


def test_the_age_of_jobs_and_the_number_of_late_jobs_are_measured(staff):
    Job.objects.create(kind="waits", created_at=timezone.now() - timedelta(hours=1))

    assert read_metric(staff, "agentcms_jobs", kind="waits", state="queued") == 1
    assert read_metric(staff, "agentcms_jobs_late") == 1
    assert read_metric(staff, "agentcms_job_oldest_seconds", state="queued") >= 3600


def test_every_line_has_the_prometheus_format(staff):
    text = staff.get("/metrics").content.decode()

    line = re.compile(r'(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [0-9.e+-]+)')
    assert [text_line for text_line in text.splitlines() if not line.fullmatch(text_line)] == []


def test_anonymous_users_and_members_cannot_read_metrics(client):
    assert client.get("/metrics").status_code == 401

    client.force_login(member("manager"))
    assert client.get("/metrics").status_code == 403


def test_a_key_of_staff_reads_metrics(client):
    key = api_key(UserFactory(is_staff=True))

    assert client.get("/metrics", headers={"authorization": f"Bearer {key}"}).status_code == 200


def test_metrics_are_sent_to_a_client_that_accepts_text_alone(staff):
    answer = staff.get("/metrics", headers={"accept": "text/plain;version=0.0.4;q=0.3"})

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")


def test_an_allowed_address_reads_metrics_unless_through_a_proxy(client, settings):
    settings.METRICS_ALLOW = [ip_network("127.0.0.0/8")]

    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", headers={"x-forwarded-for": "127.0.0.1"}).status_code == 401
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.1").status_code == 401


def test_a_start_removes_the_metrics_of_ended_processes(monkeypatch, tmp_path):
    monkeypatch.setattr(metrics, "METRICS_DIR", tmp_path)
    living = [tmp_path / f"counter_{name}.db" for name in (os.getpid(), metrics.process_name())]
    dead = [tmp_path / f"counter_{host}999999999.db" for host in ("", f"{metrics.host_name()}.")]
    for path in (*dead, *living):
        path.touch()

    metrics.remove_files_of_dead_processes()

    assert sorted(tmp_path.iterdir()) == sorted(living)


def test_processes_with_one_id_in_two_containers_have_files_of_their_own(monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1)
    names = []
    for host in ("web-1a2b", "worker-3c4d"):
        monkeypatch.setattr(metrics, "host_name", lambda host=host: host)
        names.append(metrics.process_name())

    assert names == ["web-1a2b.1", "worker-3c4d.1"]


def test_a_process_counts_in_the_file_of_its_name(tmp_path):
    script = (
        "import django; django.setup()\n"
        "from agentcms.observability import metrics\n"
        "metrics.CONFLICTS.labels(409).inc(); print(metrics.process_name())"
    )
    variables = {**os.environ, "DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "agentcms.settings"}

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, env=variables, capture_output=True, text=True, check=True
    )

    assert [path.name for path in (tmp_path / "metrics").iterdir()] == [f"counter_{done.stdout.strip()}.db"]


def test_a_start_removes_the_metrics_of_other_containers_only_after_a_day(monkeypatch, tmp_path):
    monkeypatch.setattr(metrics, "METRICS_DIR", tmp_path)
    silent, living = tmp_path / "counter_web-1a2b.1.db", tmp_path / "counter_worker_3c4d.1.db"
    for path in (silent, living):
        path.touch()
    os.utime(silent, (0, 0))

    metrics.remove_files_of_dead_processes()

    assert list(tmp_path.iterdir()) == [living]


def test_the_lag_of_observations_is_measured(staff):
    Job.objects.create(kind=OBSERVE_THREAD, created_at=timezone.now() - timedelta(minutes=5))
    Job.objects.create(kind=OBSERVE_THREAD, state=Job.State.DONE)

    assert read_metric(staff, "agentcms_observe_backlog") == 1
    assert 300 <= read_metric(staff, "agentcms_observation_lag_seconds") < 400


def test_recalls_and_the_index_backlog_are_measured(staff):
    before = read_metric(staff, "agentcms_recalls_total", outcome="failed")
    seconds = read_metric(staff, "agentcms_recall_seconds_count")
    Job.objects.create(kind=INDEX_MESSAGES)
    Job.objects.create(kind=INDEX_MESSAGES, state=Job.State.DONE)

    messages_recalled.send(None, outcome="failed", seconds=2.0)

    assert read_metric(staff, "agentcms_recalls_total", outcome="failed") == before + 1
    assert read_metric(staff, "agentcms_recall_seconds_count") == seconds + 1
    assert read_metric(staff, "agentcms_index_backlog") == 1


def test_spans_that_a_collector_does_not_take_are_counted(staff, settings, monkeypatch):
    endpoint = f"http://127.0.0.1:{free_port()}"  # nobody listens
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
    name, reasons = "agentcms_spans_dropped_total", ("queue_full", "export_failed", "stopped")
    before = {reason: read_metric(staff, name, reason=reason) for reason in reasons}
    settings.TRACES_ENDPOINT = endpoint
    tracer_provider.get_tracer_provider()

    with tracer_provider._processor._batch_processor._export_lock:  # the thread that exports waits
        for _ in range(8):
            with spans.span("work"):
                pass
    spans.shut_down()
    settings.TRACES_ENDPOINT = ""

    def lost():
        return {reason: read_metric(staff, name, reason=reason) - before[reason] for reason in reasons}

    assert lost()["queue_full"] == 3
    wait_until(lambda: sum(lost().values()) == 8, 10, "the count of all lost spans")
