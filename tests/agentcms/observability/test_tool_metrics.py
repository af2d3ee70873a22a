"""The metrics of tools from outside: background tasks, knowledge bases, MCP servers, ACP agents and cached answers."""

from datetime import timedelta

import pytest
from django.utils import timezone

from knowledge_app.models import Document, KnowledgeBase
from runs_app.background.endings import cancel_task, end_task
from runs_app.models import BackgroundTask
from runs_app.response_cache.store import answer_looked_up
from tests.agentcms.observability.test_metrics import read_metric, staff  # noqa: F401  a fixture
from tests.runs_app.background.test_api import task_of
from tests.runs_app.factories import RunFactory
from tools_app.acp.call_signal import acp_prompted
from tools_app.mcp.call_signal import mcp_called

pytestmark = pytest.mark.django_db

TASKS = "agentcms_background_tasks{"


def test_background_tasks_are_measured_by_state(staff):  # noqa: F811
    run = RunFactory()
    for number, status in enumerate(["pending", "pending", "running", "suspended", "completed", "failed"]):
        finished_at = timezone.now() if status in ("completed", "failed") else None
        task_of(run, call_key=f"c{number}", status=status, finished_at=finished_at)

    counts = {status: read_metric(staff, TASKS, status=status) for status in BackgroundTask.Status.values}

    assert counts == {
        "pending": 2,
        "running": 1,
        "suspended": 1,
        **dict.fromkeys(["completed", "failed", "cancelled", "timed_out"], 0),
    }


def test_ended_background_tasks_are_counted_by_state(staff, django_capture_on_commit_callbacks):  # noqa: F811
    def counts():
        states = ("completed", "failed", "cancelled", "timed_out")
        return [read_metric(staff, "agentcms_background_tasks_ended_total", status=state) for state in states]

    run, before = RunFactory(), counts()
    tasks = [task_of(run, call_key=f"c{number}") for number in range(5)]

    with django_capture_on_commit_callbacks(execute=True):
        end_task(tasks[0], "completed", result="Done.")
        end_task(tasks[0], "failed", error="It has ended before.")
        end_task(tasks[1], "failed", error="No.")
        end_task(tasks[2], "timed_out", error="Late.")
        cancel_task(tasks[3])

    assert [after - count for after, count in zip(counts(), before, strict=True)] == [1, 1, 1, 1]


def test_documents_are_measured_by_state_with_the_age_of_the_oldest_that_waits(staff):  # noqa: F811
    base = KnowledgeBase.objects.create(key="guide", name="Guide")
    for name, status, hours in [("a", "queued", 2), ("b", "queued", 1), ("c", "ready", 9), ("d", "failed", 9)]:
        document = Document.objects.create(base=base, name=name, status=status)
        Document.objects.filter(pk=document.pk).update(created_at=timezone.now() - timedelta(hours=hours))

    states = ("queued", "ready", "failed")
    assert [read_metric(staff, "agentcms_knowledge_documents", state=state) for state in states] == [2, 1, 1]
    assert 7200 <= read_metric(staff, "agentcms_knowledge_oldest_seconds") < 10_000


@pytest.mark.parametrize(
    ("signal", "subject", "count", "seconds", "outcomes"),
    [
        (mcp_called, "server", "agentcms_mcp_calls_total", "agentcms_mcp_call_seconds", ["succeeded", "timed_out"]),
        (acp_prompted, "agent", "agentcms_acp_prompts_total", "agentcms_acp_prompt_seconds", ["succeeded", "crashed"]),
    ],
    ids=["MCP", "ACP"],
)
def test_calls_are_counted_by_outcome_with_their_time(staff, signal, subject, count, seconds, outcomes):  # noqa: F811
    name = {subject: "office"}

    def figures():
        counts = [read_metric(staff, count, **name, outcome=outcome) for outcome in outcomes]
        buckets = [read_metric(staff, f"{seconds}_bucket", **name, le=limit) for limit in ("0.5", "1.0", "10.0")]
        return [*counts, *buckets, read_metric(staff, f"{seconds}_sum", **name)]

    before = figures()

    for outcome, duration in zip(outcomes, (0.75, 7.5), strict=True):
        signal.send(None, **name, outcome=outcome, seconds=duration)

    assert [after - value for after, value in zip(figures(), before, strict=True)] == [1, 1, 0, 1, 2, 8.25]


@pytest.mark.parametrize("result", ["hit", "miss", "bust"])
def test_lookups_of_cached_answers_are_counted_by_result(staff, result):  # noqa: F811
    before = read_metric(staff, "agentcms_response_cache_total", result=result)

    answer_looked_up.send(None, result=result)

    assert read_metric(staff, "agentcms_response_cache_total", result=result) == before + 1
