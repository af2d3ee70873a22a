"""A typed client of Agent CMS."""

from agentcms_client.calls import ApiError, Stale
from agentcms_client.clients import CALLS, AsyncClient, Client
from agentcms_client.shapes import Agent, Comparison, Job, Page, Version

__all__ = ["CALLS", "Agent", "ApiError", "AsyncClient", "Client", "Comparison", "Job", "Page", "Stale", "Version"]
