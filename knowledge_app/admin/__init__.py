"""The admin pages of this app."""

from knowledge_app.admin import knowledge_bases

__all__ = ["knowledge_bases"]
