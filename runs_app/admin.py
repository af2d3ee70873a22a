"""What staff see of running agents."""

from runs_app import admin_providers

__all__ = ["admin_providers"]
