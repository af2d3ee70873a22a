"""Errors of documents."""

from __future__ import annotations

from agentcms.errors import Unprocessable


class DocumentError(Unprocessable):
    """A document that cannot be indexed. The message is for users."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "document")
