"""The system checks of the project. Their modules register them when they are imported."""

from agentcms.checks import production, variables

__all__ = ["production", "variables"]
