"""A typed client for the API of Agent CMS."""

from agentcms_client.async_client import AsyncClient
from agentcms_client.calls import CALLS
from agentcms_client.client import Client
from agentcms_client.outcomes import BarMissed, ExperimentFailed, ItemsFailed, Outcome
from agentcms_client.requests import Call
from agentcms_client.responses import ApiError, Stale
from agentcms_client.schemas import Agent, Answer, Approval, Comparison, DeletedAgent, Job, Page, Run, Version
from agentcms_client.streaming import StreamedRun

__all__ = [
    "CALLS",
    "Agent",
    "Answer",
    "ApiError",
    "Approval",
    "AsyncClient",
    "BarMissed",
    "Call",
    "Client",
    "Comparison",
    "DeletedAgent",
    "ExperimentFailed",
    "ItemsFailed",
    "Job",
    "Outcome",
    "Page",
    "Run",
    "Stale",
    "StreamedRun",
    "Version",
]
