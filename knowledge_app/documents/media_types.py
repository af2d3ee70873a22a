"""The formats of documents."""

from __future__ import annotations

from pathlib import PurePath

from knowledge_app.documents.errors import DocumentError

TEXT, MARKDOWN, HTML, PDF = "text/plain", "text/markdown", "text/html", "application/pdf"
BY_SUFFIX = {
    ".txt": TEXT,
    ".text": TEXT,
    ".log": TEXT,
    ".csv": TEXT,
    ".rst": TEXT,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".htm": HTML,
    ".html": HTML,
    ".xhtml": HTML,
    ".pdf": PDF,
}
ACCEPTED = ",".join(BY_SUFFIX)
UNKNOWN_MEDIA_TYPE_MESSAGE = "'{name}' cannot be read. Add text, Markdown, HTML or PDF."
NOT_PDF_MESSAGE = "'{name}' is not a PDF. Save it as one, or rename it."
EMPTY_MESSAGE = "The document has no text."
NOT_TEXT_MESSAGE = "The document is not text in UTF-8. Save it as UTF-8 and add it again."


def media_type_of(name: str, content: bytes, declared: str = "") -> str:
    """Return the format of a document by its name, its content or its declared type. Raise DocumentError."""
    if content.startswith(b"%PDF-"):
        return PDF
    declared = declared.partition(";")[0].strip().lower()
    media_type = BY_SUFFIX.get(PurePath(name).suffix.lower())
    if media_type is None and declared in (TEXT, MARKDOWN, HTML, PDF, "application/xhtml+xml"):
        media_type = HTML if declared == "application/xhtml+xml" else declared
    if media_type is None and begins_like_html(content[:500]):
        media_type = HTML
    if media_type == PDF:  # a PDF begins with its mark
        raise DocumentError(NOT_PDF_MESSAGE.format(name=name))
    if media_type is None:
        raise DocumentError(UNKNOWN_MEDIA_TYPE_MESSAGE.format(name=name))
    return media_type


def begins_like_html(content: bytes) -> bool:
    return content.lstrip().lower().startswith((b"<!doctype html", b"<html"))


def decode(content: bytes) -> str:
    """Return the text of a document with plain line ends. Raise DocumentError."""
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise DocumentError(NOT_TEXT_MESSAGE) from None
    if text.count("\0") > len(text) // 100:
        raise DocumentError(NOT_TEXT_MESSAGE)
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
