"""Rows of files with items. Each is read by itself, so that a file of any size takes little memory."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from typing import IO, NamedTuple

from django.conf import settings

from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.validation import TOO_DEEP_MESSAGE
from agents_app.configuration.schema import ConfigError, Issue
from evals_app.exchange.columns import ColumnTargets, row_to_body
from evals_app.exchange.formats import FileFormat

DELIMITERS = (",", ";", "\t")
CHUNK_SIZE = 1 << 16
EXTRA_CELLS = "\0"  # a name that no spreadsheet writes
NOT_UTF8_MESSAGE = "This is not UTF-8. Save the file as UTF-8."
NUL_MESSAGE = "The names of columns must not contain a NUL character. Save the file as UTF-8."
LINE_ENDS_MESSAGE = "The line ends cannot be read. Save the file with line ends of Unix or Windows."
NOT_A_LIST_MESSAGE = 'The file must be a JSON array of items, such as [{"input": "…"}].'

_SPACE = re.compile(r"[ \t\r\n]*")
# It converts no numbers, of which Python refuses those of thousands of digits: `parse_strict_json` names them.
_find_end = json.JSONDecoder(parse_int=str).raw_decode


class UnreadableFile(Exception):
    """A file that cannot be read from a line on. `line` is 0 if no line is known."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class FileRow(NamedTuple):
    """An item of a file with the line where it begins, or the issues of what cannot be read."""

    line: int
    body: JSONObject | None
    issues: list[Issue]


def max_row_size() -> int:
    """Return the size in bytes that a row may have. Quoted JSON is up to twice as long as an item."""
    return 2 * settings.RUN_MAX_INPUT + CHUNK_SIZE


def read_rows(file: IO[bytes], file_format: str, columns: ColumnTargets | None = None) -> Iterator[FileRow]:
    """Yield the rows of a file. Raise UnreadableFile. `columns` are those of a CSV file."""
    file.seek(0)
    if file_format == FileFormat.CSV:
        for line, cells in read_csv(file):
            yield _read(line, partial(_read_cells, cells, columns or {}))
    elif file_format == FileFormat.JSONL:
        for line, raw in _lines(file):
            if raw.strip():
                yield _read(line, partial(_parse_object, raw))
    else:
        for line, text in _elements(file):
            yield _read(line, partial(_parse_object, text.encode()))


def read_header(file: IO[bytes]) -> list[str]:
    """Return the names of the columns of a CSV file, without blank ones at the end. Raise UnreadableFile."""
    file.seek(0)
    _, header = next(_csv_records(file), (0, []))
    while header and not header[-1].strip():  # spreadsheets save columns that are empty by now
        header.pop()
    if not header:
        raise UnreadableFile(1, "The first line must have the names of the columns.")
    if any("\0" in name for name in header):  # a database refuses it; UTF-16 has one in each letter
        raise UnreadableFile(1, NUL_MESSAGE)
    return header


def read_csv(file: IO[bytes]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file after its header, with the line where each begins. Raise UnreadableFile."""
    header = read_header(file)
    file.seek(0)
    for line, record in islice(_csv_records(file), 1, None):
        if any(record):
            extra = {EXTRA_CELLS: "yes"} if any(record[len(header) :]) else {}
            yield line, {**dict(zip(header, record, strict=False)), **extra}


def _read_cells(cells: dict[str, str], columns: ColumnTargets) -> JSONObject:
    if EXTRA_CELLS in cells:
        raise ConfigError([Issue("", "The row has more cells than the first line has columns.")])
    return row_to_body(cells, columns)


def _read(line: int, read: Callable[[], JSONObject]) -> FileRow:
    try:
        return FileRow(line, read(), [])
    except ConfigError as error:
        return FileRow(line, None, [*error.issues])


def _parse_object(data: bytes) -> JSONObject:
    try:
        value = parse_strict_json(data.rstrip())
    except InvalidJSON as error:
        # The line is that of the file, which the report has.
        faults = [(field, message.replace("at line 1, column", "at column")) for field, message in error.faults]
        raise ConfigError(Issue(*fault) for fault in faults) from None
    if not isinstance(value, dict):
        raise ConfigError([Issue("", "This is not a JSON object.")])
    return value


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers. Raise UnreadableFile for one that is too long."""
    limit = max_row_size()
    for number in count(1):
        line = file.readline(limit + 1)
        if not line:
            return
        if len(line) > limit:
            raise UnreadableFile(number, f"The line is longer than {limit // 1024} KB.")
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line  # a byte order mark


def _decoded_lines(file: IO[bytes]) -> Iterator[str]:
    for number, line in _lines(file):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise UnreadableFile(number, NOT_UTF8_MESSAGE) from None


def _csv_records(file: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file with the line where each begins."""
    first = next(_decoded_lines(file), "")
    file.seek(0)
    # Spreadsheets write a semicolon where the comma is the decimal mark. Without any of them it is a comma.
    # Those between quotation marks are part of a name.
    delimiter = max(DELIMITERS, key="".join(first.split('"')[::2]).count)
    csv.field_size_limit(max_row_size())  # of the process: nothing else reads CSV
    # Strict: a wrong quotation mark is an error instead of a wrong cell.
    reader = csv.reader(_decoded_lines(file), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_line_end = "new-line character" in str(error)
            message = f"The row cannot be read: {error}. Is a quotation mark missing or too many?"
            raise UnreadableFile(line, LINE_ENDS_MESSAGE if is_line_end else message) from None


def _elements(file: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the text of each element of a JSON array with the line where it begins. Raise UnreadableFile."""
    buffer = _Buffer(file)
    if buffer.skip_space() != "[":
        raise UnreadableFile(buffer.line, NOT_A_LIST_MESSAGE)
    buffer.move_to(buffer.start + 1)
    if buffer.skip_space() != "]":
        while True:
            line = buffer.line
            yield line, buffer.take_value()
            separator = buffer.skip_space()
            buffer.move_to(buffer.start + 1)
            if separator == "]":
                break
            if separator != ",":
                raise UnreadableFile(buffer.line, "A comma or the end of the list is missing.")
            buffer.skip_space()
    else:
        buffer.move_to(buffer.start + 1)
    if buffer.skip_space():
        raise UnreadableFile(buffer.line, "There is something after the end of the list.")


class _Buffer:
    """The next characters of a file of JSON, and the line where they begin."""

    def __init__(self, file: IO[bytes]) -> None:
        self.chunks = _decoded_chunks(file)
        self.text = ""
        self.start = 0
        self.line = 1

    def fill(self) -> bool:
        """Read more. Return False at the end of the file."""
        chunk = next(self.chunks, "")
        self.text = self.text[self.start :] + chunk
        self.start = 0
        return bool(chunk)

    def move_to(self, position: int) -> None:
        self.line += self.text.count("\n", self.start, position)
        self.start = position

    def skip_space(self) -> str:
        """Go to the next character that is not white space and return it, or a blank text at the end."""
        while True:
            match = _SPACE.match(self.text, self.start)
            self.move_to(match.end() if match else self.start)
            if self.start < len(self.text) or not self.fill():
                return self.text[self.start : self.start + 1]

    def take_value(self) -> str:
        """Return the text of the next value. Raise UnreadableFile."""
        while True:
            try:
                _, end = _find_end(self.text, self.start)
            except (ValueError, RecursionError) as error:
                # Before `fill`, which moves the text and so the position in the error.
                unreadable = self._unreadable(error)
                if len(self.text) - self.start > max_row_size() or not self.fill():
                    raise unreadable from None
                continue
            if end == len(self.text) and self.fill():  # a number may go on
                continue
            value = self.text[self.start : end]
            self.move_to(end)
            return value

    def _unreadable(self, error: Exception) -> UnreadableFile:
        if not isinstance(error, json.JSONDecodeError):
            return UnreadableFile(self.line, TOO_DEEP_MESSAGE)
        reason = error.msg.removesuffix(" at").rstrip(":")
        line = self.line + self.text.count("\n", self.start, error.pos)
        return UnreadableFile(line, f"The JSON cannot be read: {reason}.")


def _decoded_chunks(file: IO[bytes]) -> Iterator[str]:
    """Yield the text of a file in parts, without a byte order mark. Raise UnreadableFile."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    while chunk := file.read(CHUNK_SIZE):
        try:
            if text := decoder.decode(chunk):
                yield text
        except UnicodeDecodeError:
            raise UnreadableFile(0, NOT_UTF8_MESSAGE) from None


def first_values(file: IO[bytes], file_format: str, number: int) -> list[JSONMapping]:
    """Return the first items of a file as they are in it, for a preview. Raise UnreadableFile."""
    if file_format == FileFormat.CSV:
        return [cells for _, cells in islice(read_csv(file), number)]
    return [row.body for row in islice(read_rows(file, file_format), number) if row.body is not None]
