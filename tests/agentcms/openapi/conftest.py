"""The fixtures of API callers, without a database for the many tests that only read the description."""

from tests.api_fixtures import admin_caller, api, editor, stranger, viewer

__all__ = ["admin_caller", "api", "editor", "stranger", "viewer"]
