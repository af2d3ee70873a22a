"""The admin of runs. Django finds model admins by importing this package."""

from runs_app.admin import providers, runs

__all__ = ["providers", "runs"]
