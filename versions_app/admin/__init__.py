"""The admin of versions. Django finds model admins by importing this package."""

from versions_app.admin import activations, deleted_agents, retention, versions

__all__ = ["activations", "deleted_agents", "retention", "versions"]
