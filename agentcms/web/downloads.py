"""Files that are written while a request is handled."""

from __future__ import annotations

from collections.abc import Iterable
from tempfile import SpooledTemporaryFile

from django.conf import settings
from django.http import FileResponse

from agentcms.errors import disk_errors

IN_MEMORY_BYTES = 1024 * 1024  # larger files are written to the disk


def file_response(parts: Iterable[bytes], name: str, content_type: str) -> FileResponse:
    """Return a response that sends the parts as a file to save.

    The whole file is written first. A client that reads slowly then needs no thread, no memory and no connection to
    the database. Raise Unavailable if the disk is full or read-only.
    """
    file = SpooledTemporaryFile(IN_MEMORY_BYTES, dir=str(settings.FILE_UPLOAD_TEMP_DIR))  # noqa: SIM115  the response closes it
    with disk_errors():
        for part in parts:
            file.write(part)
        file.seek(0)
    headers = {"X-Content-Type-Options": "nosniff"}
    return FileResponse(file, as_attachment=True, filename=name, content_type=content_type, headers=headers)
