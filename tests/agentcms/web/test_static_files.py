"""Compression and caching of static files."""

import re

import pytest
from django.conf import settings

from agentcms.web.static_files import StaticFilesCompressor

TEXT = "p { color: red; }\n" * 200


@pytest.fixture
def compress(settings, tmp_path):
    """Return a function that compresses a new static file and returns the suffixes of its copies."""
    settings.STATIC_ROOT = tmp_path

    def compress_file(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT)
        return sorted(copy.removeprefix(str(path)) for copy in StaticFilesCompressor(quiet=True).compress(str(path)))

    return compress_file


def test_files_of_the_pages_are_compressed_with_brotli(compress):
    assert compress("css/base.0123456789ab.css") == [".br", ".gz"]
    assert compress("vendor/codemirror/chunk-1A2B3C4D.js") == [".br", ".gz"]


@pytest.mark.parametrize("name", ["admin/css/base.0123456789ab.css", "css/base.css"])
def test_other_files_are_compressed_with_gzip_only(compress, name):
    assert compress(name) == [".gz"]


@pytest.mark.parametrize(
    ("name", "is_immutable"),
    [("base.0123456789ab.css", True), ("chunk-1A2B3C4D.js", True), ("editor.js", False), ("mono.woff2", False)],
)
def test_only_names_with_a_hash_are_immutable(name, is_immutable):
    assert bool(re.search(settings.WHITENOISE_IMMUTABLE_FILE_TEST, f"/static/{name}")) is is_immutable
