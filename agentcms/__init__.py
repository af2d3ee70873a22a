"""Agent CMS: the top of the house, which wires the apps together."""

from agentcms.celery import app as celery_app

__all__ = ["celery_app"]
