"""Export and import by the API."""

import json
from datetime import timedelta
from io import BytesIO

import pytest
from django.utils import timezone

from agents_app.models import Agent
from jobs_app.files import file_storage, stored_names
from jobs_app.models import Job, JobFile
from jobs_app.runner import run_claimed
from tests.agent_exchange import IMPORT, export, import_file, import_records, record, run_job
from tests.api_client import MODEL, Caller, agent_path
from tests.factories import AgentFactory, UserFactory, api_key, archived_agent, member
from versions_app.exchange import import_job
from versions_app.exchange.records import MAX_RECORD_BYTES


@pytest.fixture
def root():
    return Caller(api_key(UserFactory(is_superuser=True, username="root")))


def test_an_export_is_sorted_and_reproducible(api):
    for agent_id in ("b", "a", "Ü"):
        api.create(agent_id)
    api.patch(agent_path("a"), {"name": "Draft", "autoPublish": False})

    content, job = export(api)

    records = [json.loads(line) for line in content.splitlines()]
    assert [entry["id"] for entry in records] == ["a", "b", "Ü"]
    assert (records[0]["agent"]["name"], records[0]["draft"]["name"]) == ("Concierge", "Draft")
    assert "draft" not in records[1]
    assert (job["result"]["records"], job["result"]["bytes"]) == (3, len(content))
    assert export(api)[0] == content


def test_importing_an_export_again_creates_no_version(api):
    api.create("a", metadata={"n": 1.0})
    api.create("b")
    api.patch(agent_path("a"), {"name": "Draft", "autoPublish": False})
    content = export(api)[0]
    before = list(Agent.objects.values_list("pk", "revision"))

    result = import_file(api, content)

    assert (result["same"], result["update"], result["create"], result["refuse"]) == (2, 0, 0, 0)
    assert list(Agent.objects.values_list("pk", "revision")) == before


def test_importing_into_an_empty_database_reproduces_the_export(api, root):
    api.create("a", metadata={"n": [1, None]})
    api.patch(agent_path("a"), {"name": "Draft", "autoPublish": False})
    api.create("b")
    content = export(api)[0]
    for agent in Agent.objects.all():
        agent.delete()

    result = import_file(api, content)

    assert [entry["action"] for entry in result["records"]] == ["create", "create"]
    assert export(api)[0] == content
    version = api.get(agent_path("a", "versions")).body["versions"][-1]
    assert (version["changeMessage"], version["source"], version["author"]) == (
        "Imported from agents.jsonl",
        "import",
        "penny",
    )


def test_imported_changes_are_drafts_unless_published(api):
    api.create("a")

    import_file(api, [record("a", name="New")])
    draft = api.get(agent_path("a")).body
    import_file(api, [record("a", name="Newer")], "&publish=true")
    live = api.get(agent_path("a")).body

    assert (draft["name"], draft["hasDraft"]) == ("Concierge", True)
    assert live["name"] == "Newer"
    assert api.get(f"{agent_path('a')}?status=draft").body["name"] == "New"


def test_a_dry_run_reports_the_result_and_changes_nothing(api):
    api.create("a")
    before = list(Agent.objects.values())

    result = import_file(api, [record("a", name="New"), record("b"), {"id": "c"}], "&dryRun=true")

    assert [(entry["line"], entry.get("id"), entry["action"]) for entry in result["records"]] == [
        (1, "a", "update"),
        (2, "b", "create"),
        (3, "c", "refuse"),
    ]
    assert result["dryRun"] is True
    assert list(Agent.objects.values()) == before


def test_each_invalid_record_is_refused_with_a_reason(api, stranger):
    stranger.create("theirs")
    lines = b"\n".join(
        [
            b"{",
            b'{"id":"a","agent":{"name":"A"}}',
            json.dumps(record("theirs")).encode(),
            json.dumps({**record("x"), "ownerId": "elsewhere"}).encode(),
            b'{"id":"y","agent":{"name":"x\\u0000"}}',
            b"",
            json.dumps(record("good")).encode(),
        ]
    )

    result = import_file(api, lines)

    reasons = [entry.get("reason", "") for entry in result["records"]]
    assert [entry["line"] for entry in result["records"]] == [1, 2, 3, 4, 5, 7]
    assert reasons[0].startswith("The JSON cannot be read at column 2: ")
    assert "instructions: This is required." in reasons[1]
    assert reasons[2] == "Agent with id theirs already exists"
    assert reasons[3] == "Publishing needs the Publisher role in elsewhere."
    assert "NUL" in reasons[4]
    assert (result["create"], result["refuse"]) == (1, 5)


def test_the_file_of_an_export_is_sent_as_an_attachment(api):
    api.create("a")
    job = export(api)[1]

    answer = api.client.get(f"/api/jobs/{job['id']}/file")

    assert answer.headers["Content-Disposition"] == 'attachment; filename="agents.jsonl"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_an_import_needs_publisher_and_only_the_caller_sees_the_job(api, editor):
    assert import_records(editor, [record("a")]).status_code == 403

    started = import_records(api, [record("a")])

    assert editor.get(f"/api/jobs/{started.body['id']}").status_code == 404
    assert editor.get(f"/api/jobs/{started.body['id']}/file").status_code == 404
    assert api.get(f"/api/jobs/{started.body['id']}/file").status_code == 404
    assert api.get("/api/jobs/nonsense").body["error"] == "Job with id nonsense not found"


def test_an_import_with_an_editor_key_is_refused():
    assert import_records(Caller(api_key(member("manager"), "editor")), [record("a")]).status_code == 403


def test_an_export_contains_visible_agents_only(api, stranger):
    api.create("a")
    stranger.create("b")

    assert [json.loads(line)["id"] for line in export(stranger)[0].splitlines()] == ["b"]


def test_a_long_file_name_is_refused(api):
    answer = import_records(api, [record("a")], f"{'x' * 300}")

    assert (answer.status_code, answer.body["issues"]) == (
        400,
        [{"field": "name", "message": "Use at most 255 characters."}],
    )


def test_an_empty_too_large_or_wrong_file_is_refused(api, settings):
    settings.IMPORT_MAX_BYTES = 100

    assert import_records(api, b"\n" * 0).status_code in (400, 415)
    assert import_records(api, b"x" * 101).status_code == 413
    assert api.post(IMPORT, record("a")).status_code == 415
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps([record("a")]).encode(), "This file is JSON, but not JSON Lines."),
        (json.dumps([record("a")], indent=2).encode(), "This file is JSON, but not JSON Lines."),
        (b"\n" + json.dumps(record("a"), indent=2).encode(), "This file is JSON, but not JSON Lines."),
        (json.dumps(record("a")).encode("utf-16"), "This is not a text file in UTF-8."),
        (b"\x89PNG\r\n\x1a\n\0\0", "This is not a text file in UTF-8."),
    ],
)
def test_a_file_that_is_not_json_lines_is_refused_as_a_whole(api, content, reason):
    answer = import_records(api, content)

    assert answer.status_code == 400
    assert answer.body["issues"][0]["message"].startswith(reason)
    assert not Job.objects.exists()


def test_repeating_an_import_with_one_idempotency_key_creates_one_job(api):
    before = set(stored_names(file_storage()))
    first = import_records(api, [record("a")], Idempotency_Key="k")
    again = import_records(api, [record("a")], Idempotency_Key="k")
    other = import_records(api, [record("b")], Idempotency_Key="k")

    assert first.body["id"] == again.body["id"]
    assert other.status_code == 422
    assert Job.objects.count() == 1
    assert set(stored_names(file_storage())) - before == {f"{first.body['id']}.upload"}


def test_a_repeated_id_in_a_file_is_refused(api):
    lines = [record("a"), record("b"), record("a", name="Other"), {"id": "c"}, record("c")]

    checked = import_file(api, lines, "&dryRun=true")
    result = import_file(api, lines)

    assert [entry["action"] for entry in result["records"]] == ["create", "create", "refuse", "refuse", "refuse"]
    assert result["records"][2]["reason"] == "An earlier line has the same ID. Remove one of them."
    assert checked["records"] == result["records"]
    assert api.get(agent_path("a")).body["name"] == "X"


def test_a_too_long_record_is_refused_and_the_next_is_imported(api):
    long = json.dumps(record("long", instructions="x" * MAX_RECORD_BYTES)).encode()

    result = import_file(api, b"\n".join([long, json.dumps(record("a")).encode(), long]))

    assert [(entry["line"], entry["action"]) for entry in result["records"]] == [
        (1, "refuse"),
        (2, "create"),
        (3, "refuse"),
    ]
    assert result["records"][0]["reason"] == "The record is larger than 18 MB."


def test_an_agent_with_a_large_draft_round_trips(api):
    big = "x" * 4_000_000
    api.create("a", instructions=big)
    api.patch(agent_path("a"), {"instructions": f"{big}y", "autoPublish": False})
    content = export(api)[0]
    Agent.objects.get().delete()

    assert import_file(api, content)["create"] == 1
    assert export(api)[0] == content


def test_an_agent_of_maximum_depth_round_trips(api):
    deep = json.loads("[" * 61 + "]" * 61)
    assert api.create("a", metadata={"a": deep}).status_code == 201
    api.patch(agent_path("a"), {"metadata": {"b": deep}, "autoPublish": False})
    assert api.create("b", metadata={"a": [[deep]]}).status_code == 400

    assert import_file(api, export(api)[0])["same"] == 1


@pytest.mark.parametrize("packing", ["gzip", "br"])
def test_a_compressed_file_is_refused(api, packing):
    assert import_records(api, [record("a")], Content_Encoding=packing).status_code == 415
    assert not Job.objects.exists()


def test_a_truncated_upload_is_refused(api):
    before = stored_names(file_storage())
    content = b"\n".join(json.dumps(record(name)).encode() for name in "ab")

    came = {"CONTENT_LENGTH": len(content) + 1, "wsgi.input": BytesIO(content)}
    answer = api.client.generic("POST", IMPORT, content, content_type="application/x-ndjson", **came)

    assert answer.status_code == 400
    assert answer.json()["issues"][0]["message"] == "The body ended before its declared length."
    assert not Job.objects.exists()
    assert stored_names(file_storage()) == before


@pytest.mark.parametrize("query", ["&strict=true", "&strict=true&dryRun=true"])
def test_a_strict_import_refuses_unregistered_keys(api, query):
    state = {"name": "X", "instructions": "", "model": MODEL}
    AgentFactory(id="theirs", owner_id="them")
    api.create("known")
    lines = [
        record("a", tools=["word-count", "gone"], scorers={"nobody": {}}),
        record("b", agents=["known", "later"]),
        record("later", agents=["missing"]),
        {**record("c"), "draft": {**state, "memory": "lost", "agents": ["theirs"]}},
        record("d", tools=["word-count"]),
    ]

    records = import_file(api, lines, query)["records"]

    assert [entry["action"] for entry in records] == ["refuse", "create", "refuse", "refuse", "create"]
    assert records[0]["reason"] == (
        "tools[1]: No tool is registered as 'gone'. scorers.nobody: No scorer is registered as 'nobody'."
    )
    assert records[2]["reason"] == "agents[0]: No agent is registered as 'missing'."
    assert "draft.agents[0]: No agent is registered as 'theirs'." in records[3]["reason"]
    assert "draft.memory: No memory is registered as 'lost'." in records[3]["reason"]
    assert Agent.objects.filter(pk__in="abcd").count() == (0 if "dryRun" in query else 2)


def test_all_errors_of_a_record_are_reported_together(api):
    lines = [{"id": "a", "agent": {"name": 7}, "draft": {"name": "X", "instructions": 7, "model": MODEL}}]

    reason = import_file(api, lines)["records"][0]["reason"]

    for field in ("name", "instructions", "model", "draft.instructions"):
        assert f"{field}: This " in reason


def test_an_import_deletes_its_file(api, django_capture_on_commit_callbacks):
    started = import_records(api, [record("a"), record("b")])
    with django_capture_on_commit_callbacks(execute=True):
        run_job(api, started)

    assert not JobFile.objects.exists()
    assert not file_storage().exists(f"{started.body['id']}.upload")


def test_circular_sub_agents_are_refused(api):
    result = import_file(
        api, [record("self", agents=["self"]), record("a", agents=["b"]), record("b", agents=["a"]), record("c")]
    )

    assert [entry["action"] for entry in result["records"]] == ["refuse", "create", "refuse", "create"]
    assert result["records"][0]["reason"] == "agents[0]: An agent cannot be its own sub-agent."
    assert result["records"][2]["reason"] == "agents[0]: This is a circular reference: b → a → b."
    assert not import_file(api, [record("c", agents=["c"])])["update"]


@pytest.mark.parametrize("query", ["", "&dryRun=true"])
def test_a_record_reports_unregistered_keys(api, query):
    api.create("known")
    lines = [
        record("a", tools=["gone"], agents=["known", "later", "nobody"]),
        record("known", name="Draft"),
        {**record("later"), "draft": {"name": "X", "instructions": "", "model": MODEL, "memory": "lost"}},
        record("fine"),
        {**record("bad", tools=["gone"]), "agent": {"name": 7}},
    ]

    records = import_file(api, lines, query)["records"]

    assert [[(one["field"], one["key"]) for one in entry.get("warnings", ())] for entry in records] == [
        [("tools", "gone"), ("agents", "nobody")],
        [],
        [("memory", "lost")],
        [],
        [],
    ]
    assert records[0]["warnings"][0]["message"] == "No tool is registered as 'gone'."
    assert records[0].keys() == {"line", "id", "action", "warnings"}


def test_a_sub_agent_of_another_owner_is_a_warning_like_a_missing_one(root):
    AgentFactory(id="theirs", owner_id="them")
    lines = [
        {**record("ours", agents=["theirs", "new"]), "ownerId": "us"},
        {**record("new"), "ownerId": "them"},
        {**record("other", agents=["theirs"]), "ownerId": "them"},
    ]

    records = import_file(root, lines)["records"]

    assert [one["key"] for one in records[0]["warnings"]] == ["theirs", "new"]
    assert "warnings" not in records[2]


def test_a_draft_with_circular_sub_agents_is_refused(api):
    api.create("a")
    api.create("b", agents=["a"])
    state = {"name": "X", "instructions": "", "model": MODEL}

    result = import_file(api, [{**record("a"), "draft": {**state, "agents": ["b"]}}])

    assert result["records"][0]["reason"] == "agents[0]: This is a circular reference: a → b → a."


@pytest.mark.parametrize("function_name", ["drop_resolved_warnings", "finish"])
def test_an_import_whose_worker_died_at_the_end_is_completed(api, monkeypatch, function_name):
    started = import_records(api, [record("a"), record("b", tools=["gone"])]).body["id"]
    with monkeypatch.context() as patch:
        if function_name == "finish":
            patch.setattr(Job, "finish", dying(lambda *_: None))
        else:
            patch.setattr(import_job, function_name, dying(import_job.drop_resolved_warnings))
        with pytest.raises(Killed):
            run_claimed(started)
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    run_claimed(started)

    job = api.get(f"/api/jobs/{started}").body
    assert (job["state"], job["error"], job["done"], job["total"]) == ("done", None, 2, 2)
    records = api.get(job["result"]["report"]).body["records"]
    assert [entry["action"] for entry in records] == ["create", "create"]
    assert not JobFile.objects.exists()
    assert Agent.objects.count() == 2


class Killed(BaseException):
    """An exception that no worker catches."""


def dying(act):
    def wrapper(*arguments):
        act(*arguments)
        raise Killed

    return wrapper


# --- Archived agents


def test_an_archived_agent_is_exported_and_imported_as_archived(api, root):
    api.create()
    api.post(agent_path("concierge", "archive"))
    content, _ = export(api)
    assert json.loads(content)["archived"] is True
    assert import_file(root, content)["same"] == 1
    Agent.objects.get().delete()

    result = import_file(root, content)

    assert (result["create"], result["refuse"]) == (1, 0)
    assert Agent.objects.archived().get().pk == "concierge"


def test_a_change_of_an_archived_agent_is_refused(api, root):
    api.create()
    api.post(agent_path("concierge", "archive"))

    [outcome] = import_file(root, [record("concierge", name="New")])["records"]

    assert outcome["reason"] == "Agent concierge is archived. Unarchive it first."


@pytest.mark.parametrize("value", ["true", 1, {}, []])
def test_archived_must_be_a_boolean(root, value):
    [outcome] = import_file(root, [{**record("new"), "archived": value}])["records"]

    assert outcome["reason"] == "archived: This must be true or false."


# --- Unknown names


def test_unknown_keys_of_a_record_are_warnings_or_refused(root):
    lines = [{**record("new", instrctions="Hi"), "drfat": {}}]
    expected = [
        ("drfat", "This name is unknown. Did you mean draft?"),
        ("agent.instrctions", "This name is unknown. Did you mean instructions?"),
    ]

    assert import_records(root, lines, "&dryrun=true").body["warnings"][0]["message"].endswith("Did you mean dryRun?")
    assert import_records(root, lines, "&dryrun=true&strict=true").status_code == 400
    assert Agent.objects.count() == 0
    [refused] = import_file(root, lines, "&strict=true")["records"]
    [created] = import_file(root, lines)["records"]

    assert refused["reason"] == " ".join(f"{field}: {message}" for field, message in expected)
    assert [(warning["field"], warning["message"]) for warning in created["warnings"]] == expected


def test_unknown_settings_of_a_record_are_warnings_or_refused(root):
    processors = [{"key": "trim-whitespace", "legnth": 5}]
    line = record("new", model={**MODEL, "temprature": 1})
    line["draft"] = {**line["agent"], "defaultOptions": {"maxStep": 3}, "inputProcessors": processors}
    expected = ["agent.model.temprature", "draft.model.temprature", "draft.defaultOptions.maxStep"]
    expected.append("draft.inputProcessors[0].legnth")

    [refused] = import_file(root, [line], "&strict=true")["records"]
    [created] = import_file(root, [line])["records"]

    assert sorted(warning["field"] for warning in created["warnings"]) == sorted(expected)
    assert all(f"{field}: This name is unknown." in refused["reason"] for field in expected)


def test_an_archived_sub_agent_is_named_as_archived(root):
    archived_agent("asleep")
    archived_agent("hidden", "press")

    [created] = import_file(root, [record("new", agents=["asleep", "hidden"])])["records"]
    [refused] = import_file(root, [record("other", agents=["asleep"])], "&strict=true")["records"]

    assert [warning["message"] for warning in created["warnings"]] == [
        "The agent 'asleep' is archived.",
        "No agent is registered as 'hidden'.",
    ]
    assert refused["reason"] == "agents[0]: The agent 'asleep' is archived."
