"""The fixtures of API callers."""

from tests.api_fixtures import _database, admin_caller, api, editor, stranger, viewer

__all__ = ["_database", "admin_caller", "api", "editor", "stranger", "viewer"]
