"""The format of a file that is to be imported."""

from __future__ import annotations

from typing import IO

START_BYTES = 1 << 16


def file_format_fault(file: IO[bytes]) -> str:
    """Return why a file is not JSON Lines as a whole, or a blank text. Reads the start of the file.

    Otherwise the report of a binary or indented file would have an error for each of its lines.
    """
    file.seek(0)
    start = file.read(START_BYTES)
    file.seek(0)
    if b"\0" in start:
        return "This is not a text file in UTF-8. Choose a file of JSON Lines, as an export writes it."
    first, second, *_ = [*filter(None, map(bytes.strip, start.split(b"\n", 100))), b"", b""]
    if first.startswith(b"[") or (first == b"{" and second.startswith(b'"')):
        return "This file is JSON, but not JSON Lines. Write each agent as one object on a line of its own."
    return ""
