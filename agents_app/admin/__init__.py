"""The admin of agents. Django imports this package to find the model admins."""

from agents_app.admin import agents

__all__ = ["agents"]
