"""Exports and imports whose files are in a bucket."""

import contextlib
import json
import socket
import subprocess
import sys

import pytest
from django.core.management import call_command
from s3transfer.exceptions import RetriesExceededError

from agentcms.backends import s3_storage as bucket_storage
from agentcms.backends.storage import storage_config
from agentcms.errors import Unavailable
from agentcms.server.processes import PROJECT
from jobs_app import cleanup, files
from jobs_app.models import Job, JobFile
from jobs_app.runner import run_claimed
from tests.agent_exchange import EXPORT, export, import_file, import_records, record
from tests.api_client import Caller
from tests.factories import api_key, member
from tests.operations.running_copy import suspended
from tests.s3 import running_s3
from tests.served_accounts import serving_with_accounts


@pytest.fixture(scope="module")
def server():
    with running_s3() as server:
        yield server


@pytest.fixture(autouse=True)
def closed_circuit():
    yield
    bucket_storage.bucket_circuit.record_success()


@pytest.fixture
def bucket(server, settings):
    """Store files in an empty bucket. Return its name."""
    name = server.create_bucket()
    use_storage(settings, server.url(name))
    return name


def use_storage(settings, url):
    settings.STORAGE_URL = url
    settings.STORAGES = {**settings.STORAGES, "exchange": storage_config(url, settings.DATA_DIR, "exchange")}


@pytest.fixture
def publisher(db):
    return Caller(api_key(member("publisher")))


def test_an_export_is_a_file_of_the_bucket(server, bucket, publisher):
    publisher.create("a", instructions="x" * 3_000_000)

    content, job = export(publisher)

    assert json.loads(content)["id"] == "a"
    assert job["result"]["bytes"] == len(content)
    assert server.names(bucket) == [f"agents/exchange/{job['id']}.jsonl"]


def test_an_import_reads_the_bucket_and_deletes_its_file(
    server, bucket, publisher, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        result = import_file(publisher, [record("a"), record("b"), {"id": "bad"}])

    assert (result["create"], result["refuse"]) == (2, 1)
    assert server.names(bucket) == []


def test_files_without_a_row_are_deleted_from_the_bucket(server, bucket, publisher, monkeypatch):
    publisher.create("a")
    used = export(publisher)[1]["id"]
    server.client().put_object(Bucket=bucket, Key="agents/exchange/orphan.jsonl", Body=b"{}")
    monkeypatch.setattr(files, "MAX_AGE_WITHOUT_ROW", files.MAX_AGE_WITHOUT_ROW * 0)

    run_claimed(str(Job.objects.create(kind=cleanup.CLEAN_UP).pk))

    assert server.names(bucket) == [f"agents/exchange/{used}.jsonl"]


def test_a_file_that_the_bucket_lost_is_not_found(server, bucket, publisher):
    publisher.create("a")
    job = export(publisher)[1]
    server.client().delete_object(Bucket=bucket, Key=f"agents/exchange/{job['id']}.jsonl")

    assert publisher.get(job["result"]["file"]).status_code == 404


def unused_address():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


@pytest.mark.parametrize("problem", ["refused connection", "missing bucket", "silent server"])
def test_an_unavailable_bucket_is_a_503_and_jobs_are_tried_again(server, settings, publisher, problem, monkeypatch):
    monkeypatch.setattr(bucket_storage, "READ_TIMEOUT", 0.5)
    publisher.create("a")
    with contextlib.ExitStack() as stack:
        endpoint = server.endpoint
        if problem == "refused connection":
            endpoint = unused_address()
        elif problem == "silent server":
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        use_storage(settings, f"s3://key:secret@missing?endpoint={endpoint}&region=us-east-1")

        refused = import_records(publisher, [record("a")])
        bucket_storage.bucket_circuit.record_success()  # as after its pause
        exported = publisher.post(EXPORT).body["id"]
        run_claimed(exported)

    assert (refused.status_code, refused.body["code"]) == (503, "unavailable")
    assert int(refused.headers["Retry-After"]) > 0
    job = Job.objects.get()
    assert (str(job.pk), job.state, job.error) == (exported, "running", "")
    bucket_storage.bucket_circuit.record_success()
    use_storage(settings, "")
    Job.objects.update(lease_until="2020-01-01T00:00Z")
    assert run_claimed(exported).state == "done"


def test_a_download_that_the_bucket_breaks_off_is_unavailable(closed_circuit):
    with pytest.raises(Unavailable), bucket_storage.unavailable_errors():
        raise RetriesExceededError(ConnectionResetError())

    assert bucket_storage.bucket_circuit.is_open


def count_connections(server_socket):
    """Accept all waiting connections and return their number."""
    server_socket.setblocking(False)
    number = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            server_socket.accept()[0].close()
            number += 1
    return number


def test_a_silent_bucket_delays_one_request(settings, publisher, monkeypatch):
    monkeypatch.setattr(bucket_storage, "READ_TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        use_storage(
            settings, f"s3://key:secret@b?endpoint=http://127.0.0.1:{silent.getsockname()[1]}&region=us-east-1"
        )
        first = import_records(publisher, [record("a")]).status_code
        connections = count_connections(silent)
        later = {import_records(publisher, [record("a")]).status_code for _ in range(5)}

        assert (first, later) == (503, {503})
        assert connections > 0
        assert count_connections(silent) == 0


def test_a_command_moves_local_files_to_the_bucket(server, settings, publisher, capsys):
    publisher.create("a")
    content, job = export(publisher)
    name = server.create_bucket()
    use_storage(settings, server.url(name))

    for _ in range(2):
        call_command("upload_job_files")

    assert capsys.readouterr().out.split("\n")[:2] == ["Moved 1 files.", "Moved 0 files."]
    assert server.names(name) == [f"agents/exchange/{job['id']}.jsonl"]
    assert b"".join(publisher.client.get(job["result"]["file"]).streaming_content) == content
    assert not (settings.DATA_DIR / "exchange" / JobFile.objects.get().name).exists()


RUN_DUE_JOBS = """

import django

django.setup()
from jobs_app.models import Job
from jobs_app.runner import run_claimed

for job in Job.objects.due().filter(kind__in=["export_agents", "import_agents"]).order_by("created_at"):
    run_claimed(str(job.pk))
"""


def run_jobs_on_another_machine(copy, folder):
    """Run the waiting jobs in a process with an own data folder, and the database and bucket of the copy."""
    database = copy.environment.get("DATABASE_URL") or f"sqlite:///{copy.data_dir}/agentcms.sqlite3"
    environment = {**copy.environment, "DATA_DIR": str(folder), "DATABASE_URL": database}
    environment |= {"DJANGO_SETTINGS_MODULE": "agentcms.settings", "SECRET_KEY": "another machine"}
    command = [sys.executable, "-c", RUN_DUE_JOBS]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, timeout=120)


def test_machines_that_share_no_folder_exchange_files_through_the_bucket(server, tmp_path):
    name = server.create_bucket()
    with (
        serving_with_accounts(tmp_path / "var", STORAGE_URL=server.url(name), WEB_WORKERS="1") as copy,
        copy.client(copy.keys["root"]) as client,
        suspended(copy, "agentcms.server.worker"),
    ):
        lines = "\n".join(json.dumps(record(f"a{number}")) for number in range(3))
        headers = {"content-type": "application/x-ndjson"}
        imported = client.post("/api/stored/agent-import", content=lines, headers=headers).json()
        exported = client.post(EXPORT).json()
        run_jobs_on_another_machine(copy, tmp_path / "other")
        content = client.get(f"/api/jobs/{exported['id']}/file")

        assert client.get(f"/api/jobs/{imported['id']}").json()["result"]["create"] == 3
        assert [json.loads(line)["id"] for line in content.text.splitlines()] == ["a0", "a1", "a2"]
        assert not any((folder / "exchange").exists() for folder in (copy.data_dir, tmp_path / "other"))
        assert server.names(name) == [f"agents/exchange/{exported['id']}.jsonl"]
