"""Files of jobs in the storage `exchange`: a local folder, or a bucket that all machines share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import Storage, storages
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.utils import timezone

from agentcms.errors import disk_errors
from jobs_app.cleanup import cleanup_step
from jobs_app.models import JobFile

# A file without a row is that of a process that died before it created the row.
MAX_AGE_WITHOUT_ROW = timedelta(days=1)


def file_storage() -> Storage:
    return storages["exchange"]


@contextmanager
def temporary_file(name: str) -> Iterator[TemporaryUploadedFile]:
    """Yield an empty file on this machine. The storage may move it. Otherwise it is deleted at the end."""
    with disk_errors(), TemporaryUploadedFile(name, "application/x-ndjson", 0, None) as file:
        yield file


def save_file(name: str, content: File[bytes]) -> str:
    """Save a file and return its name in the storage. Raise Unavailable."""
    with disk_errors():
        content.seek(0)
        return file_storage().save(name, content)


@cleanup_step
def delete_files_without_row() -> None:
    """Delete old files that no job has."""
    storage, limit = file_storage(), timezone.now() - MAX_AGE_WITHOUT_ROW
    # The files before the rows: a file that gets its row in between is none without a row.
    names = set(stored_names(storage)) - set(JobFile.objects.values_list("name", flat=True))
    for name in names:
        if modified_before(storage, name, limit):
            storage.delete(name)


@cleanup_step
def delete_temporary_files() -> None:
    """Delete old temporary files of killed processes."""
    limit = time.time() - MAX_AGE_WITHOUT_ROW.total_seconds()
    for path in Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir():
        with suppress(FileNotFoundError):  # an upload that ends at this moment deletes or moves its file
            if path.stat().st_mtime < limit:
                path.unlink()


def modified_before(storage: Storage, name: str, limit: datetime) -> bool:
    """Return True if the file exists and is older."""
    try:
        return storage.get_modified_time(name) < limit
    except FileNotFoundError:
        return False


def stored_names(storage: Storage) -> list[str]:
    """Return the names of all files. A local folder is created with its first file."""
    try:
        return storage.listdir("")[1]
    except FileNotFoundError:
        return []
