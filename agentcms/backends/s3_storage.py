"""Files in a bucket of an S3-compatible store. Needs the packages of requirements-s3.txt."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from s3transfer.exceptions import RetriesExceededError
from storages.backends.s3 import S3Storage

from agentcms.backends.circuit_breaker import CircuitBreaker
from agentcms.errors import Unavailable

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 3  # seconds
READ_TIMEOUT = 10  # seconds without a byte
ATTEMPTS = 2
RETRY_AFTER = 10  # seconds
MISSING_FILE_CODES = ("404", "NoSuchKey")

bucket_circuit = CircuitBreaker(RETRY_AFTER)


class BucketStorage(S3Storage):
    """A bucket whose methods raise Unavailable if its server does not respond or refuses access."""

    def __init__(self, **settings: Any) -> None:
        style = settings.get("addressing_style", "auto")
        timeouts = {"connect_timeout": CONNECT_TIMEOUT, "read_timeout": READ_TIMEOUT}
        retries = {"total_max_attempts": ATTEMPTS}
        config = Config(s3={"addressing_style": style}, signature_version="s3v4", retries=retries, **timeouts)
        super().__init__(client_config=config, **settings)

    def _open(self, name: str, mode: str = "rb") -> File:
        with unavailable_errors():
            file: File = super()._open(name, mode)
            file.open()  # downloads now, so that an error of the server is raised here
            return file

    def _save(self, name: str, content: File) -> str:
        with unavailable_errors():
            saved: str = super()._save(name, content)
            return saved

    def exists(self, name: str) -> bool:
        with unavailable_errors():
            return bool(super().exists(name))

    def delete(self, name: str) -> None:
        with unavailable_errors():
            super().delete(name)

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        with unavailable_errors():
            names: tuple[list[str], list[str]] = super().listdir(path)
            return names

    def get_modified_time(self, name: str) -> datetime:
        with unavailable_errors():
            time: datetime = super().get_modified_time(name)
            return time


@contextmanager
def unavailable_errors() -> Iterator[None]:
    """Raise FileNotFoundError for a missing file, and Unavailable for any other error. The log has the reason."""
    if not bucket_circuit.allows_call():
        raise Unavailable(seconds=RETRY_AFTER)
    try:
        yield
        bucket_circuit.record_success()
    except FileNotFoundError:
        bucket_circuit.record_success()  # the server responds
        raise
    except ClientError as error:
        bucket_circuit.record_success()
        reason = error.response.get("Error", {}).get("Code", "unknown")
        if reason in MISSING_FILE_CODES:
            raise FileNotFoundError("The bucket has no such file.") from error
        log.error("The bucket of STORAGE_URL refused a request: %s.", reason)
        raise Unavailable(seconds=RETRY_AFTER) from error
    except (BotoCoreError, RetriesExceededError) as error:  # the latter if the server broke off a download
        bucket_circuit.record_failure()
        log.error("The bucket of STORAGE_URL is unavailable: %s.", type(error).__name__)
        raise Unavailable(seconds=RETRY_AFTER) from error
