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
from redis.exceptions import ConnectionError as RedisAway

request_id: ContextVar[str] = ContextVar("request_id", default="")

is_valid_request_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
SECRET = re.compile(r"acms_[0-9a-f]{8}_[\w-]+|(?<=://)[^\s/@]*:[^\s/@]*(?=@)")
# What these say is about the machine. The text of any other error may quote a caller.
ABOUT_THE_MACHINE = (OperationalError, InterfaceError, RedisAway, OSError, ImproperlyConfigured)
FRAMES = 12


class TextFormatter(logging.Formatter):
    """A line for people; where an exception is logged, the places it went through below it."""

    def format(self, record: logging.LogRecord) -> str:
        said = f"{record.levelname} {record.name}: {message(record)}"
        if number := request_id.get():
            said += f" [{number}]"
        if record.exc_info and (error := record.exc_info[1]):
            said = "\n  ".join([said, describe_exception(error), *places(error)])
        return said


class JSONFormatter(logging.Formatter):
    """A JSON object on a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = message(record)
        if number := request_id.get():
            line["requestId"] = number
        line |= getattr(record, "facts", {})
        if record.exc_info and (error := record.exc_info[1]):
            line |= {"error": describe_exception(error), "places": places(error)}
        return json.dumps(line, ensure_ascii=False, default=str)


def message(record: logging.LogRecord) -> str:
    """What the record says, with secrets masked."""
    if record.name == "celery.app.trace" and record.exc_info:  # it would put the exception's text into the message
        task = getattr(record, "data", {})
        return f"Task {task.get('name', '')}[{task.get('id', '')}] failed."
    return SECRET.sub("***", record.getMessage())


def describe_exception(error: BaseException) -> str:
    """The kind of an error, and what it says where that can only be about the machine."""
    if isinstance(error, ABOUT_THE_MACHINE):
        return SECRET.sub("***", f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}")
    return type(error).__name__


def places(error: BaseException) -> list[str]:
    """The last places that the error went through, without their source lines."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
