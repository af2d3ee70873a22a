"""What staff see of running agents."""

from runs_app import admin_providers, admin_runs

__all__ = ["admin_providers", "admin_runs"]
