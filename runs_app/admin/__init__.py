"""Admin of runs, approvals and model providers. Django registers model admins by importing this package."""

from runs_app.admin import approvals, background_tasks, providers, runs, trace_rules

__all__ = ["approvals", "background_tasks", "providers", "runs", "trace_rules"]
