"""Models of runs, their events, steps and scores, saved inputs and model providers."""

from runs_app.models.approval_notice import ApprovalNotice
from runs_app.models.background_task import BackgroundTask, BackgroundTaskDelivery
from runs_app.models.daily_usage import DailyUsage
from runs_app.models.pending_call import PendingCall
from runs_app.models.provider import ModelProvider
from runs_app.models.run import AgentRun
from runs_app.models.run_claim import RunClaim
from runs_app.models.run_configuration import RunConfiguration
from runs_app.models.run_event import RunEvent
from runs_app.models.run_step import RunStep
from runs_app.models.saved_input import SavedInput
from runs_app.models.score import Score, ScorerCount
from runs_app.models.trace_rule import TraceRule

__all__ = [
    "AgentRun",
    "ApprovalNotice",
    "BackgroundTask",
    "BackgroundTaskDelivery",
    "DailyUsage",
    "ModelProvider",
    "PendingCall",
    "RunClaim",
    "RunConfiguration",
    "RunEvent",
    "RunStep",
    "SavedInput",
    "Score",
    "ScorerCount",
    "TraceRule",
]
