"""The pages of export and import."""

import errno
import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.test import Client
from django.urls import reverse

from access_app.role import Role
from agents_app.editing.change_context import change
from agents_app.models import Agent
from jobs_app.models import Job, JobFile
from jobs_app.runner import run_claimed
from tests.factories import AgentFactory, member
from tests.page_client import browser
from versions_app.urls_exchange import urlpatterns

pytestmark = pytest.mark.django_db

LIST, EXPORT, IMPORT = (reverse(f"exchange:{name}") for name in ("list", "export", "upload"))
OF_JOBS = [pattern.name for pattern in urlpatterns if pattern.pattern.converters]


def address(name, job):
    return reverse(f"exchange:{name}", args=[job.pk])


def run_job(answer):
    """Run the job of a response and return it."""
    assert answer.status_code == 302, answer.content.decode()
    return run_claimed(answer.url.rsplit("/", 1)[1])


def written(client, job):
    return [json.loads(line) for line in b"".join(client.get(address("download", job)).streaming_content).splitlines()]


def record(agent_id, **fields):
    agent = {"name": "X", "instructions": "", "model": {"provider": "demo", "name": "echo"}, **fields}
    return {"id": agent_id, "ownerId": "", "agent": agent}


def file(*records):
    return SimpleUploadedFile("in.jsonl", "\n".join(map(json.dumps, records)).encode())


def checked(client, *records):
    return run_job(client.post(IMPORT, {"file": file(*records)}))


# --- Out


def test_an_export_contains_visible_agents_only(viewer, agent):
    AgentFactory(owner_id="newsroom")

    job = run_job(viewer.post(EXPORT))

    html = viewer.get(address("job", job)).content.decode()
    assert "1 agent exported." in html
    assert address("download", job) in html
    assert [record["id"] for record in written(viewer, job)] == [agent.pk]


def test_an_export_of_selected_agents_contains_only_them(viewer, agent):
    AgentFactory()
    hidden = AgentFactory(owner_id="newsroom")

    job = run_job(viewer.post(EXPORT, {"selected": "yes", "agent": [agent.pk, hidden.pk]}))

    assert [record["id"] for record in written(viewer, job)] == [agent.pk]


def test_an_empty_selection_exports_nothing(viewer, agent):
    assert viewer.post(EXPORT, {"selected": "yes"}).url == reverse("agents:list")
    assert not Job.objects.exists()


# --- In


def test_checking_a_file_changes_nothing(publisher, agent):
    job = checked(publisher, record(agent.pk, name="Other"), record("new"), {"id": "bad"})

    answer = publisher.get(address("job", job))
    assert [(line.action, line.name) for line in answer.context["lines"]] == [
        ("update", "Concierge"),
        ("create", None),
        ("refuse", None),
    ]
    assert "A record must be an object with &quot;id&quot; and &quot;agent&quot;" in answer.content.decode()
    assert [line.agent_id for line in publisher.get(address("job", job), {"show": "create"}).context["lines"]] == [
        "new"
    ]
    assert Agent.objects.get().name == "Concierge"


def test_the_check_shows_the_name_of_an_agent_that_would_be_created(publisher):
    job = checked(publisher, record("new", name="Night <porter>"), record("wrong", name=5))

    new, wrong = publisher.get(address("job", job)).text.split('<th scope="row">')[1:]

    assert '<span dir="auto">Night &lt;porter&gt;</span>' in new
    assert "<code>new</code>" in new
    assert wrong.startswith("<code>wrong</code>")


def test_a_record_shows_unregistered_keys(publisher, agent):
    job = checked(publisher, record("new", tools=["gone", "lost"]), record(agent.pk))

    answer = publisher.get(address("job", job))

    assert [line.warnings for line in answer.context["lines"]] == [
        ["No tool is registered as 'gone'.", "No tool is registered as 'lost'."],
        [],
    ]
    assert answer.content.decode().count("No tool is registered as &#x27;gone&#x27;.") == 1


def test_a_record_names_what_nothing_reads(publisher, agent):
    job = checked(publisher, record("new", frobnicate=1))

    answer = publisher.get(address("job", job))

    assert [line.warnings for line in answer.context["lines"]] == [
        ["agent.frobnicate: This name is unknown. Nothing reads it."]
    ]


@pytest.mark.parametrize(("sent", "live"), [({}, "Concierge"), ({"publish": "yes"}, "Other")])
def test_a_checked_file_is_imported_as_drafts_or_published(publisher, agent, sent, live):
    job = checked(publisher, record(agent.pk, name="Other"))

    taken = run_job(publisher.post(address("confirm", job), sent))

    assert "The file was imported." in publisher.get(address("job", taken)).content.decode()
    agent.refresh_from_db()
    assert (agent.head_version.snapshot["name"], agent.active_version.snapshot["name"]) == ("Other", live)
    assert agent.head_version.change_message == "Imported from in.jsonl"


def test_the_check_and_the_import_name_a_draft_of_another_editor_that_is_replaced(publisher, agent):
    with change(actor=member(Role.EDITOR, username="bob"), publish=False):
        agent.edit({"name": "Draft"})
    note = "Draft v2 by bob is replaced. It stays in the history."

    job = checked(publisher, record(agent.pk, name="Other"))
    before = publisher.get(address("job", job)).content.decode()
    taken = run_job(publisher.post(address("confirm", job)))

    assert f"“Import changes as drafts”: {note}" in before  # publishing keeps the draft
    assert note in publisher.get(address("job", taken)).content.decode()
    assert agent.versions.get(version_number=2).snapshot["name"] == "Draft"


def test_an_import_with_a_draft_names_the_one_it_replaces_also_if_it_publishes(publisher, agent):
    with change(actor=member(Role.EDITOR, username="bob"), publish=False):
        agent.edit({"name": "Draft"})
    line = record(agent.pk, name="Other")

    job = checked(publisher, {**line, "draft": {**line["agent"], "name": "New draft"}})
    before = publisher.get(address("job", job)).context["lines"]
    taken = run_job(publisher.post(address("confirm", job), {"publish": "yes"}))

    after = publisher.get(address("job", taken)).context["lines"]
    notes = [["Draft v2 by bob is replaced. It stays in the history."]]
    assert ([line.warnings for line in before], [line.warnings for line in after]) == (notes, notes)


def test_an_import_that_keeps_or_replaces_the_own_draft_needs_no_note(publisher, agent):
    with change(actor=User.objects.get(), publish=False):
        agent.edit({"name": "Draft"})

    job = checked(publisher, record(agent.pk, name="Other"))

    assert "is replaced" not in publisher.get(address("job", job)).content.decode()


def test_the_check_counts_a_change_that_only_publishing_makes(publisher, agent):
    """The draft of the file is the stored one, so that an import as drafts would change nothing."""
    with change(publish=False):
        agent.edit({"name": "Draft"})
    draft = {**agent.head_version.snapshot}
    job = checked(publisher, {"id": agent.pk, "agent": {**draft, "name": "New live"}, "draft": draft})

    html = publisher.get(address("job", job)).content.decode()
    assert "1 existing agent will be changed." in html
    assert "Only its live version differs. “Import and publish” changes it." in html
    taken = run_job(publisher.post(address("confirm", job), {"publish": "yes"}))
    assert taken.result["update"] == job.result["update"] == 1
    agent.refresh_from_db()
    assert agent.active_version.snapshot["name"] == "New live"


def test_a_checked_file_is_imported_once(publisher, agent):
    job = checked(publisher, record("new"))
    run_job(publisher.post(address("confirm", job)))

    again = publisher.post(address("confirm", job))

    assert again.status_code == 409
    assert "already imported" in again.content.decode()
    assert "Nothing has changed yet" not in again.content.decode()
    assert Job.objects.count() == 2


def test_a_second_check_replaces_the_first_file(publisher):
    first, second = checked(publisher, record("one")), checked(publisher, record("two"))

    assert JobFile.objects.get().job == second
    assert publisher.post(address("confirm", first)).status_code == 409


def test_a_missing_empty_or_too_large_file_is_an_error_at_its_field(publisher, settings):
    settings.IMPORT_MAX_BYTES = 1024**2
    large = SimpleUploadedFile("in.jsonl", b"x" * (settings.IMPORT_MAX_BYTES + 1))

    for sent, message in (
        ({}, "Choose a file."),
        ({"file": file()}, "The file is empty."),
        ({"file": large}, "The file is larger than 1 MB. Split it into several files."),
    ):
        answer = publisher.post(IMPORT, sent)
        assert (answer.status_code, answer.context["form"].errors) == (422, {"file": [message]})
    assert not Job.objects.exists()


@pytest.mark.parametrize("method", ["new_file", "receive_data_chunk"])
def test_a_file_that_cannot_be_stored_is_refused(publisher, monkeypatch, method):
    monkeypatch.setattr(TemporaryFileUploadHandler, method, Mock(side_effect=OSError(errno.EROFS, "read-only")))
    publisher.raise_request_exception = False

    answer = publisher.post(IMPORT, {"file": file(record("new"))})

    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)


def test_a_file_that_is_not_json_lines_is_an_error_at_its_field(publisher):
    upload = SimpleUploadedFile("in.json", json.dumps([record("a")], indent=2).encode())

    answer = publisher.post(IMPORT, {"file": upload})

    assert answer.status_code == 422
    assert "This file is JSON, but not JSON Lines." in answer.content.decode()
    assert not Job.objects.exists()


def test_importing_needs_the_publisher_role(editor):
    assert "needs the Publisher role" in editor.get(LIST).content.decode()
    assert editor.post(IMPORT, {"file": file(record("new"))}).status_code == 403
    assert not Job.objects.exists()


def test_markup_in_a_file_is_escaped(publisher):
    job = checked(publisher, {"id": "<script>alert(1)</script>", "agent": {}})

    html = publisher.get(address("job", job)).content.decode()

    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert(1)" not in html


# --- Following a job


def test_the_page_polls_until_the_job_is_finished(viewer, agent):
    to = viewer.post(EXPORT).url
    waiting = viewer.get(to).content.decode()

    fragment = viewer.get(f"{to}/progress")
    job = run_claimed(to.rsplit("/", 1)[1])
    over = viewer.get(f"{to}/progress")

    assert 'http-equiv="refresh"' in waiting
    assert "every 1s" in waiting
    assert "every 1s" in fragment.content.decode()
    assert "every 1s" not in over.content.decode()
    assert "1 agent exported." in over.headers["HX-Trigger"]
    assert "Export of agents" in viewer.get(LIST).content.decode()
    assert 'http-equiv="refresh"' not in viewer.get(address("job", job)).content.decode()


def test_a_failed_job_shows_its_error(viewer):
    job = run_job(viewer.post(EXPORT))
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, error="OSError: full")

    assert "OSError: full" in viewer.get(address("job", job)).content.decode()


def test_reading_a_job_takes_a_fixed_number_of_queries(publisher, django_assert_num_queries):
    job = checked(publisher, *(record(f"agent-{number}") for number in range(150)))

    with django_assert_num_queries(8):
        publisher.get(address("job", job))


# --- Strangers


@pytest.mark.parametrize("name", OF_JOBS)
def test_a_job_of_another_user_is_not_found(publisher, name):
    job = checked(publisher, record("new"))
    other = browser(member(Role.MANAGER))

    assert {other.get(address(name, job)).status_code, other.post(address(name, job)).status_code} <= {404, 405}


@pytest.mark.parametrize("to", [EXPORT, IMPORT])
def test_a_write_needs_a_csrf_token(to):
    client = Client(enforce_csrf_checks=True)
    client.force_login(member(Role.PUBLISHER))

    assert client.get(to).status_code == 405
    assert client.post(to, {"file": file(record("new"))}).status_code == 403
    assert not Job.objects.exists()


@pytest.mark.parametrize("to", [LIST, EXPORT, IMPORT])
def test_an_anonymous_user_is_redirected_to_sign_in(db, client, to):
    call = client.get if to == LIST else client.post
    assert call(to).url.startswith(reverse("login"))


def test_other_pages_accept_no_files(client, db):
    answer = client.post(reverse("login"), {"username": "x", "password": "y", "file": file(record("new"))})

    assert not answer.wsgi_request.FILES


def test_a_file_that_cannot_be_read_is_not_kept(publisher, settings):
    part = 'Content-Disposition: form-data; name="file"; filename="a"\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!'
    folder = Path(settings.FILE_UPLOAD_TEMP_DIR)
    before = {*folder.iterdir()}

    # The response keeps its request, and with it what the request holds.
    answer = publisher.post(IMPORT, f"--x\r\n{part}\r\n--x--\r\n", content_type="multipart/form-data; boundary=x")

    assert answer.status_code == 400
    assert {*folder.iterdir()} == before
