"""Export and deletion of all data of a resource."""

import json
from datetime import timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs_app import runner
from jobs_app.models import Job
from memory_app.history.messages import Author
from memory_app.history.signal_markup import Signal
from memory_app.history.thread_signals import append_signal
from memory_app.models import Forgotten, Message, Observation, Participant, Resource, Thread, Vector
from memory_app.realms import resource_digest
from memory_app.recall import indexing
from memory_app.working import values
from runs_app.approvals.suspending import new_call, rule_columns, save_suspension
from runs_app.building.workflows import RUN_WORKFLOW
from runs_app.events.notifications import notifier
from runs_app.models import AgentRun, BackgroundTask, PendingCall, RunEvent, RunStep, Score
from runs_app.notices.webhook import WEBHOOK_JOB, webhook_payload
from runs_app.privacy import forgetting
from runs_app.privacy.export import resource_lines
from runs_app.privacy.jobs import start_resource_export
from tests.api_client import Caller
from tests.factories import AgentFactory, UserFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs import LONG, SLOW, start_run, wait_for_engine, wait_for_text
from tests.runs_app.factories import PendingCallFactory, RunFactory
from tools_app.models import AcpAgent, AcpPermission, AcpPrompt, AcpSession

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
        run = RunFactory(
            requested_by=user,
            thread=thread,
            resource=thread.resource,
            output=text,
            input={"messages": text, "requestContext": {"plan": text}, "facts": {"roles": ["editor"]}},
            remembered={"recall": {"hits": [{"id": text}]}},
        )
        add_other_rows(run, thread, text)
        RunFactory(requested_by=user, resource=thread.resource, output=text, input={"messages": text})
    return thread.realm


def texts():
    """Return the content of all tables."""
    rows = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += cursor.fetchall()
    return str(rows)


def add_other_rows(run, thread, text):
    """Add a row with a text to each table whose rows hang on a run, a thread or a resource."""
    child = RunFactory(
        requested_by=run.requested_by, parent=run, root_id=run.pk, resource=run.resource, output=text, chunks=[]
    )
    call = PendingCallFactory(run=run, arguments={"order": text}, reason=text)
    runner.enqueue(WEBHOOK_JOB, {"event": "approval_decided", "approval": webhook_payload(call)})
    workflow = {"key": "word-frequency", "arguments": {"text": text}, "run": str(child.pk)}
    Job.objects.create(kind=RUN_WORKFLOW, parameters=workflow, state=Job.State.DONE, result={text: 1})
    PendingCallFactory(run=child, root_id=run.pk, state="approved", arguments={"order": text})
    RunEvent.objects.create(run=run, number=9, type="finish", data={"text": text})
    RunEvent.objects.create(run=run, number=10, type="tool-result", data=tool_result(text))
    task = {"call_id": "c", "call_key": "c", "timeout_ms": 1, "arguments": {"text": text}, "result": {"text": text}}
    BackgroundTask.objects.create(run=run, thread=thread, agent_key=run.agent_key, tool="search", **task)
    Score.objects.create(run=run, scorer="helpful", score=1, reason=text)
    friend = UserFactory()
    Participant.objects.create(thread=thread, user=friend, name=friend.get_username())
    RunStep.objects.create(run=run, key="0/m/1", kind="model", state="done", result={"text": text})
    for place in (thread, thread.resource):
        values.replace_text(place, text, values.Origin(run_id=run.pk))
    append_signal(thread, Signal("user", text), Author(None, ""), {"wakes": False})


def tool_result(text):
    return {"type": "tool-result", "payload": {"result": text}}


def rows_of_others(realm):
    """Return the rows that a deletion of "alice" in this realm must not touch."""
    alice = {"resource__realm": realm, "resource__key": "alice"}
    threads = Thread.objects.exclude(**alice)
    queries = (
        Resource.objects.exclude(realm=realm, key="alice"),
        threads,
        Message.objects.filter(thread__in=threads),
        AgentRun.objects.exclude(**alice),
        Job.objects.filter(kind=forgetting.EXPORT_RESOURCE),
        LogEntry.objects.all(),
    )
    return [[*query.order_by("pk").values()] for query in queries]


def test_other_resources_and_an_equal_one_of_another_realm_keep_everything(realm):
    other = member("editor")
    thread = add_thread(other, "t-alice", "alice", [("user", SECRET)])
    RunFactory(requested_by=other, thread=thread, resource=thread.resource, output=SECRET)
    for at, key in ((thread.realm, "alice"), (realm, "bob")):
        parameters = {"realm": at, "resource": key}
        Job.objects.create(kind=forgetting.EXPORT_RESOURCE, parameters=parameters, state=Job.State.DONE)
    LogEntry.objects.log_actions(other.pk, [thread, thread.resource], CHANGE)
    LogEntry.objects.log_actions(
        other.pk, [AgentFactory(id=f"{Thread.objects.get(realm=realm, key='t-alice').pk}")], 2
    )
    before = rows_of_others(realm)

    runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})

    assert rows_of_others(realm) == before
    assert not Thread.objects.filter(realm=realm, resource_key="alice").exists()


def test_the_long_columns_of_what_is_deleted_are_not_read(realm):
    keys = [*Message.objects.filter(thread__key="t-alice").values_list("pk", flat=True)]
    runs = [*AgentRun.objects.filter(resource__key="alice").values_list("pk", flat=True)]

    with CaptureQueriesContext(connection) as queries:
        assert forgetting.delete_locked(Message, keys) == len(keys)
        assert forgetting.delete_locked(AgentRun, runs) == len(runs)

    read = [query["sql"].partition(" FROM ")[0] for query in queries]
    assert not [columns for columns in read if '"runs_app_message"."data"' in columns or '"output"' in columns]


def test_an_export_has_all_data_of_a_resource(realm):
    output = StringIO()

    call_command("export_resource", realm, "alice", stdout=output)

    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [line["type"] for line in lines] == [
        "resource",
        "workingRevision",
        "thread",
        "participant",
        "workingRevision",
        *["message"] * 3,
        "observation",
        *["vector"] * 2,
        *["run"] * 3,
        *["runEvent"] * 6,
        "runStep",
        "backgroundTask",
        "score",
        *["approval"] * 2,
    ]
    assert output.getvalue().count(SECRET) >= 7
    assert "Something else" not in output.getvalue()


def test_an_export_has_what_the_caller_sent_and_what_tools_returned(realm):
    lines = [json.loads(line) for line in resource_lines(realm, "alice")]
    first, child = [line for line in lines if line["type"] == "run"][:2]
    types = {line["type"]: line for line in lines}
    events = [line["data"] for line in lines if line["type"] == "runEvent"]

    assert first["input"]["requestContext"] == {"plan": SECRET}
    assert first["input"]["facts"] == {"roles": ["editor"]}
    assert (first["thread"], first["remembered"]) == ("t-alice", {"recall": {"hits": [{"id": SECRET}]}})
    assert (child["parent_id"], child["output"]) == (first["id"], SECRET)
    assert types["participant"]["thread"] == "t-alice"
    assert types["participant"]["name"] == types["participant"]["user"]
    assert {"type": "tool-result", "payload": {"result": SECRET}} in events
    assert (types["approval"]["arguments"], types["approval"]["state"]) == ({"order": SECRET}, "approved")
    assert (types["backgroundTask"]["result"], types["runStep"]["result"]) == ({"text": SECRET}, {"text": SECRET})
    assert types["score"]["reason"] == SECRET


def test_calls_that_waited_are_exported_and_deleted_after_their_runs(realm):
    run = AgentRun.objects.filter(resource__key="alice", parent=None).earliest("pk")
    save_suspension_of(run)
    AgentRun.objects.all().delete()

    exported = [json.loads(line) for line in resource_lines(realm, "alice")]
    runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})

    assert [line["arguments"] for line in exported if line["type"] == "approval"] == [{"order": "after"}]
    assert not PendingCall.objects.filter(arguments={"order": "after"}).exists()


def save_suspension_of(run):
    """Let a run wait for a call, as its process does."""
    call = new_call(run, "later", "refund", {"order": "after"}, kind="approval", **rule_columns({}))
    with transaction.atomic():
        save_suspension(run.pk, calls=[call], worked_ms=0, status="suspended", finished_at=None, last_event_number=1)


def test_the_migration_marks_calls_whose_runs_are_there(realm, monkeypatch):
    migration = import_module("runs_app.migrations.0031_fill_resource_of_approvals")
    monkeypatch.setattr(migration, "BATCH_SIZE", 1)

    migration.fill(apps, None)

    marks = [*PendingCall.objects.values_list("run__resource__key", "resource_digest").order_by("pk")]
    assert marks == [(key, resource_digest(realm, key)) for key in ("alice", "alice", "bob", "bob")]


def test_runs_that_have_not_ended_are_stopped_first(realm, monkeypatch):
    run = RunFactory(resource=Resource.objects.get(key="alice"), suspended=True)
    other = RunFactory(resource=Resource.objects.get(key="bob"), suspended=True)
    stopped, cancel = [], forgetting.run_ends.cancel_run

    def cancel_and_note(run_id):
        cancel(run_id)
        stopped.append((run_id, AgentRun.objects.get(pk=run_id).status))

    monkeypatch.setattr(forgetting.run_ends, "cancel_run", cancel_and_note)
    with CaptureQueriesContext(connection) as queries:
        runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})

    assert stopped == [(run.pk, "cancelled")]
    statement = next(query["sql"] for query in queries if query["sql"].startswith('SELECT "runs_app_agentrun"'))
    assert '"input"' not in statement.partition(" FROM ")[0]
    assert [*AgentRun.objects.unfinished()] == [other]


def test_readers_of_a_deleted_run_are_woken(realm, monkeypatch, django_capture_on_commit_callbacks):
    run = RunFactory(resource=Resource.objects.get(key="alice"), open=True)
    child = RunFactory(parent=run, root_id=run.pk, open=True)
    monkeypatch.setattr(forgetting.run_ends, "cancel_run", lambda run_id: None)  # its process cannot be reached

    with notifier.subscribe(child.pk, ends_only=True) as woken:
        with django_capture_on_commit_callbacks(execute=True):
            runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})

        assert woken.is_set()


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_run_that_is_executed_meanwhile_leaves_nothing(idle_engine, is_durable):
    """Its process notices only later, and may write until then."""
    user = member("editor")
    agent = AgentFactory(
        id="remembering",
        model=SLOW,
        memory={"options": {"workingMemory": {"template": "# Person"}, "semanticRecall": True}},
    )
    options = {"thread": "t-alice", "resource": "alice", "options": {"durable": is_durable}}
    run = wait_for_text(start_run(agent, user, f"{SECRET} {LONG}", **options))

    runner.run_now(forgetting.FORGET, {"realm": f"u{user.pk}", "resource": "alice"})
    wait_for_engine()

    assert SECRET not in texts()
    assert "alice" not in texts()
    assert not AgentRun.objects.filter(pk=run.pk).exists()
    assert [model.objects.count() for model in (RunEvent, RunStep, Resource, Thread, Message)] == [0] * 5


def test_a_deletion_that_was_interrupted_continues_until_nothing_is_left(realm, monkeypatch):
    monkeypatch.setattr(forgetting, "ROWS_PER_BATCH", 1)
    report, reports = Job.report_progress, []

    def stop_once(job, **values):
        report(job, **values)
        reports.append(values)
        if len(reports) == 2:
            raise SystemExit

    monkeypatch.setattr(Job, "report_progress", stop_once)
    job = runner.enqueue(forgetting.FORGET, {"realm": realm, "resource": "alice", "by": "ann"})
    with pytest.raises(SystemExit):
        runner.run_claimed(str(job.pk))
    assert SECRET in texts()
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, lease_until=None)

    result = runner.run_claimed(str(job.pk)).result

    assert result == {"messages": 3, "threads": 1, "runs": 3, "approvals": 2}
    assert SECRET not in texts()
    assert {row.resource.key for row in Vector.objects.all()} == {"bob"}
    assert "alice" not in texts() + str([*Job.objects.values()])
    assert Forgotten.objects.get().digest == resource_digest(realm, "alice")
    counts = [model.objects.count() for model in (Resource, Thread, Message, AgentRun)]
    assert counts == [1, 1, 3, 3]


def test_exports_and_the_log_name_the_resource_no_longer(realm, django_capture_on_commit_callbacks):
    staff = User.objects.create_superuser("root")
    rows = [*Resource.objects.filter(key="alice"), *Thread.objects.filter(resource_key="alice")]
    for row in rows:
        LogEntry.objects.log_actions(staff.pk, [row], CHANGE, "Opened.", single_object=True)
    export = runner.run_claimed(str(start_resource_export(staff, realm, "alice").pk))
    path = Path(export.file.open().name)
    assert path.exists()

    with django_capture_on_commit_callbacks(execute=True):
        runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})

    assert "alice" not in texts()
    assert not path.exists()
    assert LogEntry.objects.count() == 2


def test_a_restored_backup_is_swept_again(realm, monkeypatch):
    deleted, listed, output = StringIO(), StringIO(), StringIO()
    call_command("forget_resource", realm, "alice", yes=True, stdout=deleted)
    call_command("sweep_forgotten", list=True, stdout=listed)
    Forgotten.objects.all().delete()  # the backup is older
    user = User.objects.get(memory_resources__key="bob")
    add_thread(user, "t-alice", "alice")
    Resource.objects.filter(key="alice").update(created_at=timezone.now() - timedelta(days=30))
    monkeypatch.setattr("sys.stdin", StringIO(listed.getvalue()))

    call_command("sweep_forgotten", stdout=output)

    assert output.getvalue() == "Deleted the data of 1 resource.\n"
    assert [*Thread.objects.values_list("resource_key", flat=True)] == ["bob"]
    assert "alice" not in listed.getvalue()


def test_what_a_backup_has_without_the_row_of_its_resource_is_swept_too(realm, monkeypatch):
    """A run without memory makes no row, and approvals outlive it."""
    user, old = User.objects.get(memory_resources__key="bob"), timezone.now() - timedelta(days=30)
    for key in (realm, "alice"):
        call_command("forget_resource", realm, key, yes=True, stdout=StringIO())
    RunFactory(requested_by=user, output=SECRET, created_at=old)
    marks = {"arguments": {"order": SECRET}, "resource_digest": resource_digest(realm, "alice")}
    PendingCallFactory(run=RunFactory(output="Of somebody else."), created_at=old, **marks)
    later = PendingCallFactory(run=RunFactory(output="Of somebody else."), **marks)
    monkeypatch.setattr("sys.stdin", StringIO())
    output = StringIO()

    call_command("sweep_forgotten", stdout=output)

    assert output.getvalue() == "Deleted the data of 2 resources.\n"
    assert not AgentRun.objects.filter(output=SECRET).exists()
    assert [*PendingCall.objects.filter(resource_digest=marks["resource_digest"])] == [later]
    assert Thread.objects.filter(resource_key="bob").exists()


def test_a_person_who_came_back_is_not_swept(realm, monkeypatch):
    call_command("forget_resource", realm, "alice", yes=True, stdout=StringIO())
    add_thread(User.objects.get(memory_resources__key="bob"), "new", "alice")
    monkeypatch.setattr("sys.stdin", StringIO())

    call_command("sweep_forgotten", stdout=StringIO())

    assert Thread.objects.filter(resource_key="alice").exists()


def test_a_list_that_is_none_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO("[]\n"))

    with pytest.raises(CommandError, match="Line 1 is not one of"):
        call_command("sweep_forgotten", stdout=StringIO())


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

    assert "Delete 1 thread and 3 runs of alice" in questions[0]
    assert output.getvalue() == "Deleted 1 thread, 3 messages and 3 runs.\n"


def test_where_nobody_can_be_asked_the_command_names_its_option(realm, monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO())

    with pytest.raises(CommandError, match=r"^Nothing was deleted, because nobody could be asked\. Add --yes\.$"):
        call_command("forget_resource", realm, "alice")

    assert Thread.objects.count() == 2


def test_runs_without_memory_belong_to_the_user_who_asked(realm):
    user = User.objects.get(memory_resources__key="bob")
    run = RunFactory(requested_by=user, output=SECRET)
    RunFactory(requested_by=user, parent=run, root_id=run.pk, output=SECRET)
    save_suspension_of(run)
    others = [RunFactory(output="Of somebody else."), RunFactory(requested_by=user, experiment_id=uuid4())]
    remaining = AgentRun.objects.exclude(output=SECRET).count()

    exported = [json.loads(line) for line in resource_lines(realm, realm)]
    runner.run_now(forgetting.FORGET, {"realm": realm, "resource": realm})

    assert [line["type"] for line in exported].count("run") == 2
    assert not AgentRun.objects.filter(pk=run.pk).exists()
    assert not PendingCall.objects.filter(arguments={"order": "after"}).exists()
    assert AgentRun.objects.filter(pk__in=[other.pk for other in others]).count() == 2
    assert AgentRun.objects.exclude(output=SECRET).count() == remaining


def test_calls_of_runs_without_memory_are_found_after_their_runs(realm):
    user = User.objects.get(memory_resources__key="bob")
    run = RunFactory(requested_by=user, suspended=True)
    save_suspension_of(run)
    AgentRun.objects.filter(pk=run.pk).delete()

    runner.run_now(forgetting.FORGET, {"realm": realm, "resource": realm})

    assert not PendingCall.objects.filter(arguments={"order": "after"}).exists()


def test_nothing_is_added_to_a_resource_while_its_data_is_deleted(realm, monkeypatch):
    user = User.objects.get(memory_resources__key="bob")
    AgentFactory(id="remembering", memory="last-messages")
    caller, codes = Caller(api_key(user)), []
    report = Job.report_progress

    def use_meanwhile(job, **values):
        report(job, **values)
        calls = [
            ("/api/memory/threads", {"threadId": "new", "resourceId": "alice"}),
            ("/api/memory/threads/t-bob/transfer", {"resourceId": "alice"}),
            ("/api/memory/threads/t-bob/clone", {"resourceId": "alice"}),
            (
                "/api/agents/remembering/generate",
                {"messages": SECRET, "memory": {"thread": "new", "resource": "alice"}},
            ),
        ]
        codes.extend(caller.post(path, body).body.get("code") for path, body in calls)

    monkeypatch.setattr(Job, "report_progress", use_meanwhile)
    runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})
    monkeypatch.undo()

    assert {*codes} == {"resource_forgotten"}
    assert SECRET not in texts()
    assert caller.post("/api/memory/threads", {"threadId": "new", "resourceId": "alice"}).status_code == 201


def test_no_thread_of_a_resource_is_used_moved_or_copied_while_its_data_is_deleted(realm):
    user = User.objects.get(memory_resources__key="bob")
    AgentFactory(id="remembering", memory="last-messages")
    caller = Caller(api_key(user))
    Resource.objects.filter(key="alice").update(forgetting_since=timezone.now())
    calls = [
        ("/api/memory/threads/t-alice/transfer", {"resourceId": "bob"}),
        ("/api/memory/threads/t-alice/clone", {"resourceId": "bob"}),
        (
            "/api/agents/remembering/generate",
            {"messages": SECRET, "memory": {"thread": "t-alice", "resource": "alice"}},
        ),
        (
            "/api/agents/remembering/send-message",
            {"message": SECRET, "threadId": "t-alice", "resourceId": "alice"},
        ),
    ]

    codes = [caller.post(path, body).body.get("code") for path, body in calls]

    assert codes == ["resource_forgotten"] * 4
    assert [*Thread.objects.order_by("pk").values_list("resource_key", flat=True)] == ["alice", "bob"]


def test_what_a_request_adds_that_had_begun_before_is_deleted_too(realm, monkeypatch):
    user, delete, late = User.objects.get(memory_resources__key="bob"), forgetting.delete_resource, []

    def add_before(*arguments):
        if not late:
            resource = Resource.objects.get(key="alice")
            late.append(
                Thread.objects.create(realm=realm, key="late", resource=resource, resource_key="alice", user=user)
            )
        return delete(*arguments)

    monkeypatch.setattr(forgetting, "delete_resource", add_before)
    runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})

    assert late
    assert [*Thread.objects.values_list("resource_key", flat=True)] == ["bob"]
    assert not Resource.objects.filter(key="alice").exists()


def test_the_jobs_of_many_child_runs_are_deleted_in_batches(realm, monkeypatch):
    monkeypatch.setattr(forgetting, "ROWS_PER_BATCH", 2)
    run = AgentRun.objects.filter(resource__key="alice", parent=None).earliest("pk")
    children = [RunFactory(parent=run, root_id=run.pk, agent=run.agent, chunks=[]) for _ in range(5)]
    for child in children:
        Job.objects.create(kind=RUN_WORKFLOW, parameters={"run": str(child.pk)}, state=Job.State.DONE)
    sent = []

    def note(run_ids, **kwargs):
        sent.append([*run_ids])

    forgetting.runs_forgotten.connect(note)
    try:
        forgetting.announce_deletion([run.pk])
    finally:
        forgetting.runs_forgotten.disconnect(note)

    assert [len(batch) for batch in sent] == [2, 2, 2, 1]  # with one that the fixture has
    assert not Job.objects.filter(parameters__run__in=[str(child.pk) for child in children]).exists()


def test_what_acp_agents_have_in_a_conversation_is_exported_and_deleted(realm):
    thread = Thread.objects.get(key="t-alice")
    agent = AcpAgent.objects.create(key="helper", title="Helper", command_key="never")
    AcpPermission.objects.create(
        agent=agent, thread=thread, mark="m", title=f"Write {SECRET}", option_kind="allow_always"
    )
    AcpSession.objects.create(agent=agent, thread=thread, version_number=1, session_id="session-7")
    AcpPrompt.objects.create(run=AgentRun.objects.filter(thread=thread).earliest("pk"), number=1)

    lines = {line["type"]: line for line in map(json.loads, resource_lines(realm, "alice"))}
    runner.run_now(forgetting.FORGET, {"realm": realm, "resource": "alice"})

    assert (lines["acpPermission"]["title"], lines["acpPermission"]["agent"]) == (f"Write {SECRET}", "helper")
    assert (lines["acpSession"]["session_id"], lines["acpSession"]["thread"]) == ("session-7", "t-alice")
    assert lines["acpPrompt"]["number"] == 1
    assert SECRET not in texts()
