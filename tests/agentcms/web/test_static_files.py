"""Compression and caching of static files."""

import re

import pytest
from django.conf import settings

from agentcms.server.prepare import remove_old_static_files
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


def test_files_of_the_release_that_still_serves_stay(tmp_path):
    (tmp_path / "css").mkdir()
    (tmp_path / "staticfiles.json").write_text('{"paths": {"css/a.css": "css/a.present.css"}}')
    for name in ("a.css", "a.present.css", "a.present.css.gz", "a.earlier.css", "a.earlier.css.br"):
        (tmp_path / "css" / name).touch()

    remove_old_static_files(tmp_path)

    assert {path.name for path in tmp_path.rglob("*.*")} == {"staticfiles.json", "a.present.css", "a.present.css.gz"}


def test_the_first_collection_finds_nothing_to_remove(tmp_path):
    remove_old_static_files(tmp_path / "static")

    assert [*tmp_path.iterdir()] == []
