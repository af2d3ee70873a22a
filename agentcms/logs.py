"""Formatters and filters of the log. Lines have the id of their request and never contain user data or secrets."""

from __future__ import annotations

import json
import logging
import re
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus

from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError

from agentcms.wire.json_types import JSONObject

request_id: ContextVar[str] = ContextVar("request_id", default="")

is_valid_request_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
SECRET_PATTERN = re.compile(r"acms_[0-9a-f]{8}_[\w-]+|(?<=://)[^\s/@:]*:[^\s/@]*(?=@)")
# The messages of these errors describe the system. The message of any other error may quote user data.
INFRASTRUCTURE_ERRORS = (OperationalError, InterfaceError, RedisConnectionError, OSError, ImproperlyConfigured)
# Characters that begin a line or control a terminal. A path may contain them.
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_FRAMES = 12


class FaultFilter(logging.Filter):
    """A filter of Django's log of failed requests. An answer 501 says what is not supported, and nothing is wrong."""

    def filter(self, record: logging.LogRecord) -> bool:
        return getattr(record, "status_code", None) != HTTPStatus.NOT_IMPLEMENTED


class WarningFilter(logging.Filter):
    """A filter that turns errors into warnings of one line, without their tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.levelno, record.levelname, record.exc_info = logging.WARNING, "WARNING", None
        return logging.getLogger().isEnabledFor(logging.WARNING)


class TextFormatter(logging.Formatter):
    """A formatter for people: one line, followed by the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"{record.levelname} {record.name}: {escape_control_characters(masked_message(record))}"
        if current_id := request_id.get():
            text += f" [{current_id}]"
        if record.exc_info and (error := record.exc_info[1]):
            reason = escape_control_characters(describe_exception(error))
            text = "\n  ".join([text, reason, *traceback_lines(error)])
        return text


class JSONFormatter(logging.Formatter):
    """A formatter for machines: one JSON object on each line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: JSONObject = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = masked_message(record)
        if current_id := request_id.get():
            line["requestId"] = current_id
        line |= getattr(record, "fields", {})
        if record.exc_info and (error := record.exc_info[1]):
            line |= {"error": describe_exception(error), "traceback": traceback_lines(error)}
        return json.dumps(line, ensure_ascii=False, default=str)


def masked_message(record: logging.LogRecord) -> str:
    """Return the message of a record with secrets masked."""
    if record.name == "celery.app.trace" and record.exc_info:  # Celery adds the message of the exception
        task = getattr(record, "data", {})
        return f"Task {task.get('name', '')}[{task.get('id', '')}] failed."
    return SECRET_PATTERN.sub("***", record.getMessage())


def escape_control_characters(text: str) -> str:
    """Return a text in one line, so that nobody can add lines to the log."""
    return CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def describe_exception(error: BaseException) -> str:
    """Return the class of an error, with its message only if that cannot contain user data."""
    return describe_service_error(error) if isinstance(error, INFRASTRUCTURE_ERRORS) else type(error).__name__


def describe_service_error(error: BaseException) -> str:
    """Return the class and the message of an error of a service that gets no user data."""
    message = str(error).partition("\n")[0][:300]
    return SECRET_PATTERN.sub("***", f"{type(error).__name__}: {message}".removesuffix(": "))


def traceback_lines(error: BaseException) -> list[str]:
    """Return the last frames of the traceback, without source lines."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
