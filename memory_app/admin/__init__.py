"""Admin of conversations and resources. Django registers model admins by importing this package."""

from memory_app.admin import observations, resources, threads, vectors

__all__ = ["observations", "resources", "threads", "vectors"]
