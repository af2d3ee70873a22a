"""The fixtures of page tests, and of agents with a history."""

from tests.history_pages import drafted, story
from tests.page_client import agent, publisher

__all__ = ["agent", "drafted", "publisher", "story"]
