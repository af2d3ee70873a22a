"""Export and deletion of all data of a resource."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from jobs_app import runner
from jobs_app.models import Job
from memory_app.models import Forgotten, Message, Observation, Resource, Thread, Vector
from memory_app.recall import indexing
from runs_app import forget
from runs_app.models import AgentRun
from tests.factories import member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

SECRET = "turquoise"


@pytest.fixture
def realm():
    """Return the realm of a user with a resource to forget and another one."""
    user = member("editor")
    for key in ("alice", "bob"):
        text = SECRET if key == "alice" else "Something else"
        thread = add_thread(user, f"t-{key}", key, [("user", text), ("assistant", text)])
        runner.run_now(indexing.INDEX_MESSAGES, {"thread": thread.pk, "embedder": "local/multilingual"})
        Observation.objects.create(thread=thread, first=1, last=2, text=text, tokens=3, message_tokens=3)
        RunFactory(requested_by=user, thread=thread, resource=thread.resource, output=text, input={"messages": text})
        RunFactory(requested_by=user, resource=thread.resource, output=text, input={"messages": text})
    return thread.realm


def texts():
    """Return the content of all tables of conversations and runs."""
    tables = (
        "runs_app_message",
        "runs_app_thread",
        "runs_app_agentrun",
        "memory_app_resource",
        "memory_app_observation",
    )
    with connection.cursor() as cursor:
        rows = []
        for table in tables:
            cursor.execute(f"SELECT * FROM {table}")
            rows += cursor.fetchall()
    return str(rows)


def test_an_export_has_all_data_of_a_resource(realm):
    output = StringIO()

    call_command("export_resource", realm, "alice", stdout=output)

    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [line["type"] for line in lines] == [
        "resource",
        "thread",
        *["message"] * 2,
        "observation",
        *["vector"] * 2,
        *["run"] * 2,
    ]
    assert output.getvalue().count(SECRET) >= 7
    assert "Something else" not in output.getvalue()


def test_a_deletion_that_was_interrupted_continues_until_nothing_is_left(realm, monkeypatch):
    monkeypatch.setattr(forget, "ROWS_PER_BATCH", 1)
    report, reports = Job.report_progress, []

    def stop_once(job, **values):
        report(job, **values)
        reports.append(values)
        if len(reports) == 2:
            raise SystemExit

    monkeypatch.setattr(Job, "report_progress", stop_once)
    job = runner.enqueue(forget.FORGET, {"realm": realm, "resource": "alice", "by": "ann"})
    with pytest.raises(SystemExit):
        runner.run_claimed(str(job.pk))
    assert SECRET in texts()
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, lease_until=None)

    result = runner.run_claimed(str(job.pk)).result

    assert result == {"messages": 2, "threads": 1, "runs": 2}
    assert SECRET not in texts()
    assert {row.resource.key for row in Vector.objects.all()} == {"bob"}
    assert "alice" not in texts() + str([*Job.objects.values()])
    assert Forgotten.objects.get().digest == forget.resource_digest(realm, "alice")
    counts = [model.objects.count() for model in (Resource, Thread, Message, AgentRun)]
    assert counts == [1, 1, 2, 2]


def test_the_command_asks_and_names_the_numbers(realm, monkeypatch):
    questions = []
    monkeypatch.setattr("builtins.input", lambda text: questions.append(text) or "n")

    with pytest.raises(CommandError, match="Nothing was deleted"):
        call_command("forget_resource", realm, "alice")
    with pytest.raises(CommandError, match="A realm is"):
        call_command("forget_resource", "alice", realm, yes=True)
    assert Thread.objects.count() == 2

    output = StringIO()
    call_command("forget_resource", realm, "alice", yes=True, stdout=output)

    assert "Delete 1 threads and 2 runs of alice" in questions[0]
    assert output.getvalue() == "Deleted 1 threads, 2 messages and 2 runs.\n"
