"""File uploads. Only views with `accepts_upload` receive a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import SkipFile, TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from agentcms.errors import disk_errors
from agentcms.web.refused_forms import refuse_other_user

ViewFunction = Callable[..., HttpResponse]


class SizeLimitedUploadHandler(TemporaryFileUploadHandler):
    """An upload handler that writes a file to disk and skips one above the size limit."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        with disk_errors():
            super().new_file(*args, **kwargs)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if start + len(raw_data) > settings.IMPORT_MAX_BYTES:
            self.request.was_too_large = True  # type: ignore[union-attr]
            self.file.close()
            raise SkipFile
        with disk_errors():
            super().receive_data_chunk(raw_data, start)

    def close_file(self) -> None:
        """Delete the last file if it still exists. Django keeps one that it could not read to its end."""
        if (file := getattr(self, "file", None)) is not None:
            file.close()


def accepts_upload(view: ViewFunction) -> ViewFunction:
    """Let a view receive an uploaded file. Use it as the innermost decorator, after the checks of the user."""

    @csrf_protect
    def protected(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return refuse_other_user(request) or view(request, *args, **kwargs)

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Check the CSRF token and the user only now: to read them is to read the form with its file.
        handler = SizeLimitedUploadHandler(request)
        request.upload_handlers = [handler]
        try:
            return protected(request, *args, **kwargs)
        finally:
            handler.close_file()

    wrapped.accepts_upload = True  # type: ignore[attr-defined]
    return csrf_exempt(wrapped)
