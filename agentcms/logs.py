"""Log lines that carry the id of their request, and never what a caller wrote: no instruction text, no secret."""

from __future__ import annotations

import json
import logging
import re
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError

request_id: ContextVar[str] = ContextVar("request_id", default="")

is_valid_request_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
SECRET_PATTERN = re.compile(r"acms_[0-9a-f]{8}_[\w-]+|(?<=://)[^\s/@]*:[^\s/@]*(?=@)")
# What these say is about the machine. The text of any other error may quote a caller.
INFRASTRUCTURE_ERRORS = (OperationalError, InterfaceError, RedisConnectionError, OSError, ImproperlyConfigured)
MAX_FRAMES = 12


class TextFormatter(logging.Formatter):
    """A line for people; where an exception is logged, the places it went through below it."""

    def format(self, record: logging.LogRecord) -> str:
        said = f"{record.levelname} {record.name}: {masked_message(record)}"
        if number := request_id.get():
            said += f" [{number}]"
        if record.exc_info and (error := record.exc_info[1]):
            said = "\n  ".join([said, describe_exception(error), *traceback_lines(error)])
        return said


class JSONFormatter(logging.Formatter):
    """A JSON object on a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = masked_message(record)
        if number := request_id.get():
            line["requestId"] = number
        line |= getattr(record, "facts", {})
        if record.exc_info and (error := record.exc_info[1]):
            line |= {"error": describe_exception(error), "places": traceback_lines(error)}
        return json.dumps(line, ensure_ascii=False, default=str)


def masked_message(record: logging.LogRecord) -> str:
    """What the record says, with secrets masked."""
    if record.name == "celery.app.trace" and record.exc_info:  # it would put the exception's text into the message
        task = getattr(record, "data", {})
        return f"Task {task.get('name', '')}[{task.get('id', '')}] failed."
    return SECRET_PATTERN.sub("***", record.getMessage())


def describe_exception(error: BaseException) -> str:
    """The kind of an error, and what it says where that can only be about the machine."""
    if isinstance(error, INFRASTRUCTURE_ERRORS):
        return SECRET_PATTERN.sub("***", f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}")
    return type(error).__name__


def traceback_lines(error: BaseException) -> list[str]:
    """The last places that the error went through, without their source lines."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
