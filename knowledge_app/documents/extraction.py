"""The extraction of the text of documents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from knowledge_app.documents import media_types
from knowledge_app.documents.errors import DocumentError
from knowledge_app.documents.media_types import EMPTY_MESSAGE, decode_text
from tools_app.programs.commands import Command
from tools_app.programs.sandbox import NO_SANDBOX, SANDBOX, is_sandbox_available

PROGRAM = Path(__file__).with_name("extraction_program.py")
MAX_EXTRACTED_CHARACTERS = 5_000_000  # of the text of a document
MAX_PLACE_LENGTH = 200
MAX_SECTIONS = 20_000  # headings of a text that become places; a hostile one consists of millions
TOO_LONG_MESSAGE = f"The document has more than {MAX_EXTRACTED_CHARACTERS:,} characters of text. Divide it."
SCANNED_MESSAGE = "The PDF has no text. It may be a scan: add a version with recognized text."
STOPPED_MESSAGE = "The document could not be read within {seconds} seconds and the memory limit. Divide it."

is_heading = re.compile(r"(#{1,6})[ \t](.+)").fullmatch
is_fence = re.compile(r"\s{0,3}(```|~~~)").match


class ExtractedText(NamedTuple):
    """The text of a document, with the places in it: the position of each and its name."""

    text: str
    sections: list[tuple[int, str]]


def extract_text(content: bytes, media_type: str) -> ExtractedText:
    """Return the text of a document. Raise DocumentError."""
    extracted = extract_pages(content, media_type)
    if not extracted.text.strip():
        raise DocumentError(SCANNED_MESSAGE if media_type == media_types.PDF else EMPTY_MESSAGE)
    if len(extracted.text) > MAX_EXTRACTED_CHARACTERS:
        raise DocumentError(TOO_LONG_MESSAGE)
    return extracted


def extract_pages(content: bytes, media_type: str) -> ExtractedText:
    if media_type == media_types.PDF:
        return join_pages(run_program("pdf", content))
    if media_type == media_types.HTML:
        text = "\n".join(run_program("html", decode_text(content).encode()))
        return ExtractedText(text, [*islice(headings(text), MAX_SECTIONS)])
    text = decode_text(content)
    if media_type == media_types.CSV:
        return ExtractedText(text, [column_names(text)])
    sections = [*islice(headings(text), MAX_SECTIONS)] if media_type == media_types.MARKDOWN else []
    return ExtractedText(text, sections)


def column_names(text: str) -> tuple[int, str]:
    """Return the first line of a CSV file as the place of all its chunks: rows say little without their columns."""
    first_line = text.lstrip().partition("\n")[0]
    return 0, " ".join(f"Columns: {first_line}".split())[:MAX_PLACE_LENGTH]


def join_pages(pages: list[str]) -> ExtractedText:
    text, sections = "", []
    for number, page in enumerate(pages, 1):
        sections.append((len(text), f"Page {number}"))
        text += page.strip() + "\n\n"
    return ExtractedText(text, sections)


def headings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the headings of Markdown with those above them, such as "Install › Upgrade"."""
    path: list[tuple[int, str]] = []
    position, fence = 0, ""
    for line in text.splitlines(keepends=True):
        if opened := is_fence(line):
            fence = "" if fence == opened[1] else fence or opened[1]
        elif not fence and (heading := is_heading(line.rstrip())):
            level, title = len(heading[1]), heading[2].strip()
            title = title.rstrip(" \t#") or title  # a heading may end with the marks that it begins with
            path = [*((above, name) for above, name in path if above < level), (level, title)]
            yield position, " › ".join(name for _, name in path)[:MAX_PLACE_LENGTH]
        position += len(line)


def run_program(kind: str, content: bytes) -> list[str]:
    """Extract the pages of a document in another process, in the sandbox where there is one."""
    seconds = settings.KNOWLEDGE_EXTRACTION_TIMEOUT
    limits = (str(settings.KNOWLEDGE_MAX_PAGES), str(MAX_EXTRACTED_CHARACTERS), str(seconds))
    sandbox = SANDBOX if is_sandbox_available() else NO_SANDBOX
    command = Command("extraction", (sys.executable, "-I", str(PROGRAM), kind, *limits), sandbox=sandbox)
    try:
        # The program limits its CPU time itself. Here the time counts that it waits, too.
        done = subprocess.run(
            command.full_argv, input=content, capture_output=True, timeout=seconds + 5, env=command.environment
        )
    except subprocess.TimeoutExpired:
        raise DocumentError(STOPPED_MESSAGE.format(seconds=seconds)) from None
    if done.returncode != 0 or not done.stdout:
        raise DocumentError(STOPPED_MESSAGE.format(seconds=seconds))
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise DocumentError(str(answer["error"]))
    # PostgreSQL stores no NUL, and half a surrogate pair has no UTF-8.
    return [str(page).replace("\0", "").encode("utf-8", "replace").decode() for page in answer["pages"]]
