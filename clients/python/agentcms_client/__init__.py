"""A typed client for the API of Agent CMS."""

from agentcms_client.calls import CALLS
from agentcms_client.clients import AsyncClient, Client
from agentcms_client.responses import ApiError, Stale
from agentcms_client.schemas import Agent, Answer, Comparison, DeletedAgent, Job, Page, Version

__all__ = [
    "CALLS",
    "Agent",
    "Answer",
    "ApiError",
    "AsyncClient",
    "Client",
    "Comparison",
    "DeletedAgent",
    "Job",
    "Page",
    "Stale",
    "Version",
]
