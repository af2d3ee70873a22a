"""Admin of runs, approvals and model providers. Django registers model admins by importing this package."""

from runs_app.admin import approvals, providers, runs, trace_rules

__all__ = ["approvals", "providers", "runs", "trace_rules"]
