"""Admin of runs and model providers. Django registers model admins by importing this package."""

from runs_app.admin import providers, runs

__all__ = ["providers", "runs"]
