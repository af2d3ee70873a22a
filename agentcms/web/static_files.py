"""The storage of static files: hashed names, compressed with gzip and Brotli."""

from __future__ import annotations

import re
from collections.abc import Collection

from django.conf import settings
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

# The files of every page. Brotli would take seconds at the start for those of the admin and of libraries.
BROTLI_FOLDERS = ("/css/", "/js/", "/vendor/htmx/", "/vendor/codemirror/")


class StaticFilesCompressor(Compressor):
    """A compressor that adds Brotli, which is smaller but slower, to the files of the pages."""

    def compress(self, path: str) -> list[str]:
        """Write the compressed copies of a file and return their paths."""
        name = path.removeprefix(str(settings.STATIC_ROOT))
        if name.startswith(BROTLI_FOLDERS) and re.search(settings.WHITENOISE_IMMUTABLE_FILE_TEST, name):
            return list(super().compress(path))
        return list(Compressor(use_brotli=False, quiet=True).compress(path))


class StaticFilesStorage(CompressedManifestStaticFilesStorage):
    """Static files with a hash of their content in their names."""

    def create_compressor(self, *, extensions: Collection[str] | None, quiet: bool) -> Compressor:
        return StaticFilesCompressor(extensions=extensions, quiet=quiet)
