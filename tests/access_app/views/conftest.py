"""The fixtures of page tests."""

from tests.page_client import agent, editor, publisher, viewer

__all__ = ["agent", "editor", "publisher", "viewer"]
