"""The modes of files in the data folder, which nobody but the user of the application may read."""

import os
import stat
import subprocess
import sys

import pytest
from django.db import connection

from agentcms.server import prepare
from agentcms.server.processes import PROJECT
from tests.served import Served

WRITE = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE t (a)")
connection.set_autocommit(False)
connection.rollback()
"""


def readable_by_others(folder):
    """Return the files that other users may read. Static files are public."""
    files = [path for path in folder.rglob("*") if path.is_file() and "static" not in path.relative_to(folder).parts]
    return [str(path.relative_to(folder)) for path in files if file_mode(path) & 0o077]


def file_mode(path):
    """Return the mode of a file, or 0 if it is gone: SQLite deletes its log when the last connection ends."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return 0


@pytest.mark.sqlite_only
def test_a_database_in_an_open_folder_is_not_readable_by_others(tmp_path):
    folder = tmp_path / "var"
    folder.mkdir()
    folder.chmod(0o755)
    copy = Served(folder)
    command = [sys.executable, "manage.py", "shell", "-v", "0", "--no-imports", "-c", WRITE]

    subprocess.run(command, env=copy.environment, cwd=PROJECT, check=True, umask=0o022, timeout=60)

    assert (folder / "agentcms.sqlite3").exists()
    assert readable_by_others(folder) == []


def test_a_running_copy_has_no_file_that_others_may_read(served):
    assert (served.data_dir / "secret_key").exists()
    assert readable_by_others(served.data_dir) == []


@pytest.mark.sqlite_only
@pytest.mark.django_db
def test_the_files_of_an_earlier_release_are_restricted(tmp_path, settings, monkeypatch):
    paths = [tmp_path / f"db.sqlite3{suffix}" for suffix in ("", "-wal")]
    for path in paths:
        path.touch()
        path.chmod(0o644)
    monkeypatch.setitem(settings.DATABASES, "default", {**connection.settings_dict, "NAME": str(paths[0])})

    prepare.restrict_database_files()

    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600, 0o600]
    assert os.access(paths[0], os.R_OK)
