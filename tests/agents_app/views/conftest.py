"""The fixtures of page tests, and of agents with a history."""

from tests.history_pages import drafted, story
from tests.page_client import agent, editor, publisher, viewer

__all__ = ["agent", "drafted", "editor", "publisher", "story", "viewer"]
