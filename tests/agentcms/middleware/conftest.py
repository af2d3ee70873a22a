"""The fixtures of an API caller and of a signed-in browser."""

from tests.api_fixtures import api
from tests.page_client import agent, publisher

__all__ = ["agent", "api", "publisher"]
