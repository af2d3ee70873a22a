"""The API of background tasks, their page, and whose tasks a user sees."""

import json

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from access_app.models import ApiKey
from runs_app.background import task_streams
from runs_app.models import BackgroundTask
from tests.factories import AgentFactory, api_key, member
from tests.runs_app.factories import RunFactory

TASKS = "/api/background-tasks"
JSON = "application/json"


def task_of(run, tool="research", **values):
    columns = {"agent_key": run.agent_key, "owner_id": run.owner_id, "call_key": tool, "call_id": "c1"}
    return BackgroundTask.objects.create(**{"run": run, "tool": tool, "timeout_ms": 1000, **columns, **values})


@pytest.fixture
def user(db):
    return member("editor", "support")


@pytest.fixture
def task(user):
    agent = AgentFactory(owner_id="support")
    return task_of(
        RunFactory(agent=agent, requested_by=user), arguments={"topic": "tea"}, progress={"done": 1, "total": 4}
    )


@pytest.fixture
def caller(user):
    client = Client()
    client.force_login(user)
    return client


def test_a_task_has_the_members_that_the_published_client_reads(caller, task):
    listed = caller.get(TASKS).json()
    one = caller.get(f"{TASKS}/{task.pk}").json()

    assert listed["tasks"] == [one]
    assert listed["total"] == 1
    created = one.pop("createdAt")
    assert created.endswith("Z")
    assert one == {
        "id": str(task.pk),
        "status": "pending",
        "toolName": "research",
        "toolCallId": "c1",
        "args": {"topic": "tea"},
        "agentId": task.agent_key,
        "runId": str(task.run_id),
        "disposition": "deferred",
        "retryCount": 0,
        "maxRetries": 0,
        "timeoutMs": 1000,
        "progress": {"done": 1, "total": 4},
    }


@pytest.mark.parametrize(
    ("query", "tools"),
    [
        ("", ["b", "a"]),
        ("?orderDirection=asc", ["a", "b"]),
        ("?status=completed", ["b"]),
        ("?toolName=a", ["a"]),
        ("?runId=no-run", []),
        ("?agentId=other", []),
        ("?fromDate=2030-01-01T00:00:00Z", []),
        ("?perPage=1&page=1", ["a"]),
        ("?orderBy=completedAt", ["b", "a"]),
        ("?orderBy=completedAt&orderDirection=asc", ["b", "a"]),
        ("?dateFilterBy=completedAt&fromDate=2020-01-01T00:00:00Z", ["b"]),
    ],
)
def test_tasks_are_filtered_and_ordered(caller, user, query, tools):
    run = RunFactory(agent=AgentFactory(owner_id="support"), requested_by=user)
    task_of(run, "a")
    task_of(run, "b", status="completed", finished_at=run.finished_at)

    listed = caller.get(f"{TASKS}{query}").json()["tasks"]

    assert [task["toolName"] for task in listed] == tools


def test_the_period_includes_its_start_and_not_its_end(caller, task):
    """As in Mastra, whose other periods include both."""
    time = caller.get(TASKS).json()["tasks"][0]["createdAt"]

    def count(query):
        return caller.get(f"{TASKS}?{query}={time}").json()["total"]

    assert (count("fromDate"), count("toDate")) == (1, 0)


@pytest.mark.parametrize("query", ["status=odd", "orderBy=name", "orderDirection=up", "page=-1", "fromDate=never"])
def test_a_bad_query_is_refused_with_its_name(caller, query):
    answer = caller.get(f"{TASKS}?{query}")

    assert answer.status_code == 400
    assert answer.json()["issues"][0]["field"] == query.partition("=")[0]


def test_a_stranger_and_a_former_member_see_no_task(task, user):
    strangers = [member("manager", "sales"), user]
    user.memberships.all().delete()

    for stranger in strangers:
        client = Client()
        client.force_login(stranger)
        page = client.get(reverse("runs:background_tasks"))
        assert client.get(TASKS).json()["tasks"] == []
        assert client.get(f"{TASKS}/{task.pk}").status_code == 404
        assert client.post(f"{TASKS}/{task.pk}/cancel", content_type=JSON).status_code == 404
        assert client.post(reverse("runs:cancel_task", args=[task.pk])).status_code == 404
        assert "research" not in page.content.decode()
    assert Client().get(f"{TASKS}/{task.pk}").status_code == 401
    assert Client().get(f"{TASKS}/stream").status_code == 401
    task.refresh_from_db()
    assert task.status == "pending"


def test_a_task_is_cancelled_once(caller, task):
    first = caller.post(f"{TASKS}/{task.pk}/cancel", content_type=JSON)
    again = caller.post(f"{TASKS}/{task.pk}/cancel", content_type=JSON)

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["status"] == "cancelled"
    assert first.json()["completedAt"] == again.json()["completedAt"]


def test_the_page_reads_neither_arguments_nor_results(caller, task):
    """Each may have 256 KB, and the page is read again every two seconds while a task works."""
    with CaptureQueriesContext(connection) as queries:
        page = caller.get(reverse("runs:background_tasks")).content.decode()

    assert "research" in page.lower()
    sql = " ".join(query["sql"] for query in queries)
    assert "call_id" in sql
    assert not {name for name in ("arguments", "result", "working_memory") if f'"{name}"' in sql}


def test_the_page_lists_tasks_with_progress_and_cancels_them(caller, task):
    page = caller.get(reverse("runs:background_tasks")).content.decode()
    caller.post(reverse("runs:cancel_task", args=[task.pk]))
    after = caller.get(reverse("runs:background_tasks")).content.decode()

    assert '<progress max="100" value="25"' in page
    assert 'hx-trigger="every 2s"' in page
    assert "was cancelled" in after
    assert "every 2s" not in after
    assert reverse("runs:cancel_task", args=[task.pk]) not in after


@pytest.mark.django_db(transaction=True)
def test_the_stream_tells_what_happens_to_the_tasks_of_a_user(caller, task, monkeypatch):
    task_of(RunFactory(agent=AgentFactory(owner_id="sales")), "hidden", status="running")
    BackgroundTask.objects.filter(pk=task.pk).update(status="running", started_at=task.created_at)

    answer = caller.get(f"{TASKS}/stream")
    blocks = iter(answer.streaming_content)
    first = next(blocks), next(blocks)
    monkeypatch.setattr(task_streams, "TASK_POLL_INTERVAL", 0)
    BackgroundTask.objects.filter(pk=task.pk).update(status="completed", result="Tea.", finished_at=timezone.now())
    last = next(blocks)
    answer.close()
    chunks = [json.loads(line[6:]) for line in (first[1] + last).decode().split("\n\n") if line.startswith("data: ")]

    assert [chunk["type"] for chunk in chunks] == [
        "background-task-running",
        "background-task-output",
        "background-task-completed",
    ]
    assert {chunk["payload"]["taskId"] for chunk in chunks} == {str(task.pk)}
    assert chunks[-1]["payload"]["result"] == "Tea."


@pytest.mark.django_db(transaction=True)
def test_the_stream_ends_when_its_key_is_revoked(user, task, monkeypatch):
    monkeypatch.setattr(task_streams, "TASK_POLL_INTERVAL", 0)
    key = api_key(user)
    answer = Client().get(f"{TASKS}/stream", headers={"Authorization": f"Bearer {key}"})
    blocks = iter(answer.streaming_content)
    next(blocks)
    BackgroundTask.objects.filter(pk=task.pk).update(status="running", started_at=task.created_at)
    seen = next(blocks)

    ApiKey.objects.get().revoke()
    BackgroundTask.objects.filter(pk=task.pk).update(status="completed", result="Tea.", finished_at=timezone.now())

    assert (b"background-task-running" in seen, [*blocks]) == (True, [])


@pytest.mark.django_db
def test_a_stream_until_idle_does_not_read_a_result_again_that_it_has_sent(monkeypatch):
    run, now, read = RunFactory(agent=AgentFactory()), timezone.now(), []
    task = task_of(run, status="completed", result="Tea.", started_at=now, finished_at=now)
    changes = task_streams.TaskObserver.changes
    monkeypatch.setattr(
        task_streams.TaskObserver, "changes", lambda self, row, *more: read.append(row.pk) or changes(self, row, *more)
    )
    watch = task_streams.IdleWatch({run.pk}, max_idle=1)

    batches = watch.read(), watch.read()

    assert [[chunk["type"] for _, chunk in batch] for batch in batches] == [
        ["background-task-running", "background-task-completed"],
        [],
    ]
    assert read == [task.pk]
    assert not watch.is_waiting()


@pytest.mark.django_db(transaction=True)
def test_the_stream_tells_a_former_superuser_nothing_of_others(task, monkeypatch):
    monkeypatch.setattr(task_streams, "TASK_POLL_INTERVAL", 0)
    monkeypatch.setattr(task_streams, "HEARTBEAT", 0)
    root = User.objects.create_superuser("root")
    answer = Client().get(f"{TASKS}/stream", headers={"Authorization": f"Bearer {api_key(root)}"})
    blocks = iter(answer.streaming_content)
    assert [next(blocks), next(blocks)] == [task_streams.KEEP_ALIVE] * 2

    User.objects.filter(pk=root.pk).update(is_superuser=False)
    BackgroundTask.objects.filter(pk=task.pk).update(status="completed", result="Tea.", finished_at=timezone.now())

    assert next(blocks) == task_streams.KEEP_ALIVE
    answer.close()


@pytest.mark.django_db(transaction=True)
def test_tasks_that_have_ended_make_room_for_others_in_the_stream(monkeypatch):
    monkeypatch.setattr(task_streams, "MAX_TASKS_PER_READ", 2)
    monkeypatch.setattr(task_streams, "TASK_POLL_INTERVAL", 0)
    run, now = RunFactory(agent=AgentFactory()), timezone.now()
    tasks = [task_of(run, f"call-{number}", status="running", started_at=now) for number in range(3)]
    stream = task_streams.follow_tasks(BackgroundTask.objects.all)

    seen = [next(stream)]
    BackgroundTask.objects.exclude(pk=tasks[2].pk).update(status="completed", finished_at=timezone.now())
    seen += [next(stream), next(stream)]

    kinds = [[(chunk["type"], chunk["payload"]["taskId"]) for chunk in chunks] for chunks in seen]
    started, ended = "background-task-running", "background-task-completed"
    first, second, third = (str(task.pk) for task in tasks)
    assert kinds == [[(started, first), (started, second)], [(ended, first), (ended, second)], [(started, third)]]


@pytest.mark.django_db(transaction=True)
def test_the_stream_tells_the_ends_of_tasks_of_a_worker_whose_clock_is_behind(monkeypatch):
    monkeypatch.setattr(task_streams, "TASK_POLL_INTERVAL", 0)
    monkeypatch.setattr(task_streams, "HEARTBEAT", 0)
    run, now = RunFactory(agent=AgentFactory()), timezone.now()
    late, ended = now - timezone.timedelta(seconds=30), {"status": "completed", "started_at": now}
    task_of(run, "before", **ended, finished_at=now)
    task_of(run, "long", status="running", started_at=now)
    stream = task_streams.follow_tasks(BackgroundTask.objects.all)

    seen = [next(stream)]
    BackgroundTask.objects.filter(tool="long").update(status="completed", finished_at=late)
    task_of(run, "short", **ended, finished_at=late)
    seen.append(next(stream))

    kinds = [[(chunk["payload"]["toolName"], chunk["type"].rpartition("-")[2]) for chunk in chunks] for chunks in seen]
    assert kinds == [[("long", "running")], [("long", "completed"), ("short", "running"), ("short", "completed")]]


@pytest.mark.django_db(transaction=True)
def test_the_stream_forgets_tasks_that_ended_long_ago_and_does_not_send_them_again(monkeypatch):
    monkeypatch.setattr(task_streams, "TASK_POLL_INTERVAL", 0)
    monkeypatch.setattr(task_streams, "HEARTBEAT", 0)
    observers, observer_class, now = [], task_streams.TaskObserver, timezone.now()
    monkeypatch.setattr(task_streams, "TaskObserver", lambda: observers.append(observer_class()) or observers[0])
    task_of(RunFactory(agent=AgentFactory()), status="completed", started_at=now, finished_at=now)
    stream = task_streams.follow_tasks(BackgroundTask.objects.all)
    assert (next(stream), len(observers[0].ended_ids)) == ([], 1)

    monkeypatch.setattr(timezone, "now", lambda: now + task_streams.ENDS_REMEMBERED + timezone.timedelta(seconds=1))

    assert [next(stream), next(stream), next(stream)] == [[], [], []]
    assert observers[0].ended_ids == []


@pytest.mark.django_db
def test_what_the_database_did_not_say_is_not_seen():
    run, now = RunFactory(agent=AgentFactory()), timezone.now()
    task = task_of(run, "call-1", status="running", started_at=now)
    observer = task_streams.TaskObserver()

    def lost_tasks():
        yield task
        raise OperationalError("gone")

    with pytest.raises(OperationalError):
        observer.read(lost_tasks())

    assert [chunk["type"] for chunk in observer.read([task])] == ["background-task-running"]


def test_the_stream_until_idle_refuses_a_bad_idle_time(caller, user):
    agent = AgentFactory(owner_id="support")
    bodies = [
        ({"maxIdleMs": 0}, "maxIdleMs"),
        ({"untilIdle": {"maxIdleMs": "long"}}, "untilIdle.maxIdleMs"),
        ({"untilIdle": "false"}, "untilIdle"),
        ({"untilIdle": 1}, "untilIdle"),
    ]
    for body, field in bodies:
        answer = caller.post(
            f"/api/agents/{agent.pk}/stream-until-idle", {"messages": "Hi", **body}, content_type="application/json"
        )
        assert answer.status_code == 400, body
        assert [issue["field"] for issue in answer.json()["issues"]] == [field]
