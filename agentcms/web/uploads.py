"""Files that pages take: none, but where a view says so and how large."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import SkipFile, TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt, csrf_protect

View = Callable[..., HttpResponse]


class SizeLimitedUploadHandler(TemporaryFileUploadHandler):
    """Writes a file to disk up to the limit, and leaves out one that is larger."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if start + len(raw_data) > settings.IMPORT_MAX_BYTES:
            self.request.was_too_large = True  # type: ignore[union-attr]
            self.file.close()
            raise SkipFile
        super().receive_data_chunk(raw_data, start)


def accepts_upload(view: View) -> View:
    """Let a view read one uploaded file. Innermost, so that nobody's file is read who may not send one."""
    protected = csrf_protect(view)

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # The token is checked here and not before: that reads the form, and with it the file.
        request.upload_handlers = [SizeLimitedUploadHandler(request)]
        return protected(request, *args, **kwargs)

    return csrf_exempt(wrapped)
