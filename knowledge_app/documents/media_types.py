"""The formats of documents."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from pathlib import PurePath

from knowledge_app.documents.errors import DocumentError

TEXT, MARKDOWN, HTML, PDF = "text/plain", "text/markdown", "text/html", "application/pdf"
CSV = "text/csv"
BY_SUFFIX = {
    ".csv": CSV,
    ".tsv": CSV,
    ".txt": TEXT,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".htm": HTML,
    ".html": HTML,
    ".xhtml": HTML,
    ".pdf": PDF,
}
DECLARED = {name: name for name in (CSV, TEXT, MARKDOWN, HTML, PDF)} | {"application/xhtml+xml": HTML}
UNKNOWN_MEDIA_TYPE_MESSAGE = "'{name}' cannot be read. Add text in UTF-8, HTML or PDF."
NOT_PDF_MESSAGE = "'{name}' is not a PDF. Save it as one, or rename it."
EMPTY_MESSAGE = "The document has no text."
NOT_TEXT_MESSAGE = "The document is not text in UTF-8. Save it as UTF-8 and add it again."

# Of ASCII and Latin-1, without blank space, the line break of some old texts, and the escape of colours in logs.
has_control_characters = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]").search
match_url = re.compile(r"https?://[^/?#]*(?P<path>[^?#]*)", re.IGNORECASE).match


def media_type_of(name: str, content: bytes, declared: str = "") -> str:
    """Return the format of a document by its name, its content or its declared type. Raise DocumentError."""
    if content.startswith(b"%PDF-"):
        return PDF
    declared = declared.partition(";")[0].strip().lower()
    media_type = BY_SUFFIX.get(suffix_of(name)) or DECLARED.get(declared)
    if media_type is None and begins_like_html(content[:500]):
        media_type = HTML
    if media_type == PDF:  # a PDF begins with its mark
        raise DocumentError(NOT_PDF_MESSAGE.format(name=name))
    if media_type is None and not is_text_without_format(content):
        raise DocumentError(UNKNOWN_MEDIA_TYPE_MESSAGE.format(name=name))
    return media_type or TEXT


def suffix_of(name: str) -> str:
    """Return the ending of the name of a file, or of the path of a URL: the host `example.md` says no format."""
    url = match_url(name)
    return PurePath(url["path"] if url else name).suffix.lower()


def is_text_without_format(content: bytes) -> bool:
    """Return whether a file of unknown format, such as source code or JSON, can be read as text."""
    try:
        text = decode_text(content)
    except DocumentError:
        return False
    # RTF is text with the layout of a word processor.
    return not has_control_characters(text) and not text.startswith("{\\rtf")


def begins_like_html(content: bytes) -> bool:
    return content.removeprefix(BOM_UTF8).lstrip().lower().startswith((b"<!doctype html", b"<html"))


def decode_text(content: bytes) -> str:
    """Return the text of a document with plain line ends. Raise DocumentError."""
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise DocumentError(NOT_TEXT_MESSAGE) from None
    # So many NULs are those of another encoding or of a binary file. A few are left out.
    if text.count("\0") > len(text) // 100:
        raise DocumentError(NOT_TEXT_MESSAGE)
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
