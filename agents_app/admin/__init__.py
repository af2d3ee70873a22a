"""The admin of agents. Django finds model admins by importing this package."""

from agents_app.admin import agents

__all__ = ["agents"]
