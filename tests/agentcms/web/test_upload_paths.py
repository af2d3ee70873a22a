"""The paths whose bodies may be as large as a file."""

import pytest
from django.conf import settings
from django.urls import URLPattern, get_resolver
from rest_framework.parsers import MultiPartParser

from tests.routes import PARAMETER


def accepts_files(callback):
    parsers = getattr(getattr(callback, "cls", None), "parser_classes", ())
    return MultiPartParser in parsers or getattr(callback, "accepts_upload", False)


def upload_paths(patterns, path="/"):
    """Yield the path of each view that receives a file, with a value for each parameter."""
    for pattern in patterns:
        here = path + PARAMETER.sub("one", str(pattern.pattern))
        if not isinstance(pattern, URLPattern):
            yield from upload_paths(pattern.url_patterns, here)
        elif accepts_files(pattern.callback):
            yield here


@pytest.mark.parametrize("path", [*upload_paths(get_resolver().url_patterns)])
def test_every_view_that_receives_a_file_may_receive_a_large_one(path):
    assert settings.UPLOAD_PATHS.fullmatch(path)
