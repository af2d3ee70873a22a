"""Full disks: refused writes, working reads and recovery."""

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import httpx
import psutil
import pytest
from django.db import connection
from django.test import Client

from agentcms.observability import metrics
from agentcms.server.processes import PROJECT
from jobs_app import runner
from jobs_app.models import Job
from tests import postgres
from tests.api_client import AGENTS, Caller
from tests.factories import UserFactory, api_key
from tests.operations.running_copy import ConcurrentEditors, assert_consistent, is_ready, ready
from tests.served import Served, wait_until
from tests.served_accounts import serving_with_accounts
from versions_app.integrity import triggers
from versions_app.integrity.check import CHECK_HISTORY

SIZE = 48 << 20


class Disk(Protocol):
    def fill(self, copy: Served) -> None: ...

    def free(self, copy: Served) -> None: ...


class SmallDisk:
    """A separate file system that is filled completely."""

    def __init__(self, folder: Path) -> None:
        self.ballast = folder / "ballast"

    def fill(self, copy: Served | None = None) -> None:
        with contextlib.suppress(OSError), self.ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self, copy: Served | None = None) -> None:
        self.ballast.unlink()


class SmallFiles:
    """A limit of file sizes, for machines where the tests cannot mount. The log of the database soon exceeds it."""

    def fill(self, copy: Served) -> None:
        self.limit(copy, 1 << 20)

    def free(self, copy: Served) -> None:
        self.limit(copy, resource.RLIM_INFINITY)

    def limit(self, copy: Served, size: int) -> None:
        for process in copy.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.rlimit(psutil.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def limited(folder: Path) -> Iterator[SmallFiles]:
    yield SmallFiles()


def may_mount() -> bool:
    """Return True if the tests may mount file systems, which containers often forbid."""
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return os.geteuid() == 0 and subprocess.run(tried, capture_output=True).returncode == 0


DISKS = [limited, mounted] if may_mount() else [limited]


@pytest.mark.sqlite_only
@pytest.mark.parametrize("kind", DISKS, ids=lambda kind: kind.__name__)
def test_a_full_disk_refuses_writes_and_loses_nothing(tmp_path, kind, is_drill):
    folder = tmp_path / "var"
    with kind(folder) as disk, serving_with_accounts(folder, AGENT_VERSION_LIMIT="1000000") as copy:
        with ConcurrentEditors(copy) as editors:
            for _ in range(10 if is_drill else 2):
                fill_and_free(copy, disk, editors)
        wait_until(lambda: is_ready(copy), 120, f"readiness; {ready(copy)}")
        editors.assert_nothing_lost()
        assert_consistent(copy)


def fill_and_free(copy: Served, disk: Disk, editors: ConcurrentEditors) -> None:
    """Fill the disk until edits are refused, read, free the disk, and wait for further edits."""
    refused = len(editors.refused)
    disk.fill(copy)
    try:
        wait_until(lambda: len(editors.refused) > refused + 8, 60, "that edits are refused")
        with copy.client(copy.keys["root"]) as client:
            answer = client.get(f"{AGENTS}/{editors.agents[0]}")
            assert answer.status_code == 200, answer.text
        assert httpx.get(f"{copy.base_url}/healthz", timeout=30).status_code == 200
    finally:
        disk.free(copy)
    editors.wait_for_more(20)


@contextlib.contextmanager
def versions_on_a_small_disk() -> Iterator[SmallDisk]:
    """Move the table of versions to a separate file system."""
    folder, name = Path(tempfile.mkdtemp(prefix="agentcms-disk-", dir="/tmp")), f"small_{uuid.uuid4().hex[:12]}"
    user = postgres.unprivileged()["user"]
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},uid={user},mode=0700", "tmpfs", folder], check=True)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLESPACE {name} LOCATION '{folder}'")
            cursor.execute(f"ALTER TABLE {triggers.TABLE} SET TABLESPACE {name}")
            try:
                yield SmallDisk(folder)
            finally:
                cursor.execute(f"ALTER TABLE {triggers.TABLE} SET TABLESPACE pg_default")
                cursor.execute(f"DROP TABLESPACE {name}")
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


if may_mount():  # PostgreSQL takes no quota for a full disk

    @pytest.mark.postgres_only
    @pytest.mark.django_db(transaction=True)
    def test_a_full_disk_of_postgres_refuses_writes_and_loses_nothing():
        caller = Caller(api_key(UserFactory(is_superuser=True)))
        caller.create("porter")
        with versions_on_a_small_disk() as disk:
            disk.fill()
            refused = [caller.patch(f"{AGENTS}/porter", long_text()) for _ in range(3)]
            read = caller.get(f"{AGENTS}/porter")
            disk.free()
            saved = caller.patch(f"{AGENTS}/porter", long_text())

        assert [(answer.status_code, "Retry-After" in answer.headers) for answer in refused] == [(503, True)] * 3
        assert (read.status_code, read.body["activeVersionNumber"]) == (200, 1)
        assert (saved.status_code, saved.body["activeVersionNumber"]) == (200, 2)
        assert runner.run_claimed(str(Job.objects.create(kind=CHECK_HISTORY).pk)).result["found"] == 0


def long_text() -> dict[str, str]:
    """Return a text that cannot be compressed and does not fit into a page of the table."""
    return {"instructions": os.urandom(100_000).hex()}


@pytest.mark.sqlite_only
@pytest.mark.django_db(transaction=True)
def test_a_read_succeeds_where_the_last_use_of_its_key_cannot_be_written():
    client = Client(headers={"Authorization": f"Bearer {api_key(UserFactory(is_superuser=True))}"})
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        try:
            answer = client.get("/api/stored/agents")
        finally:
            cursor.execute("PRAGMA query_only = OFF")

    assert answer.status_code == 200


def test_a_process_without_space_for_metrics_counts_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    monkeypatch.setattr(metrics, "METRICS_DIR", tmp_path / "gone")

    metrics.reserve_files()

    elsewhere = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
    assert elsewhere.is_dir()
    assert elsewhere != tmp_path
    elsewhere.rmdir()


def test_a_process_reserves_space_for_its_metrics(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "METRICS_DIR", tmp_path)

    metrics.reserve_files()

    taken = [path.stat().st_blocks * 512 for path in tmp_path.iterdir()]
    assert len(taken) == 2
    assert min(taken) >= metrics.FILE_SIZE


def test_a_process_maps_no_file_for_metrics_before_it_has_reserved_space(tmp_path):
    script = "import django; django.setup()"
    variables = {"DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "agentcms.settings"}

    subprocess.run([sys.executable, "-c", script], cwd=PROJECT, env={**os.environ, **variables}, check=True)

    assert [*(tmp_path / "metrics").iterdir()] == []
