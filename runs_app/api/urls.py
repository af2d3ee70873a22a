"""URLs of the API of running agents, runs, approvals and model providers."""

from django.urls import path

from runs_app.api import agents, approvals, background_tasks, decisions, personal_data, providers, runs, thread_signals

AGENT_PATH = "agents/<str:agent_id>"
TASK_PATH = "background-tasks/<str:task_id>"
RESOURCE_PATH = "memory/resources/<str:resource_id>"
API_RUN_PATH = "runs/<str:run_id>"

urlpatterns = [
    path("agents", agents.RunnableAgentsView.as_view(), name="api-running-agents"),
    path("agents/providers", providers.ProvidersView.as_view(), name="api-providers"),
    path(AGENT_PATH, agents.RunnableAgentView.as_view(), name="api-running-agent"),
    path(f"{AGENT_PATH}/generate", agents.GenerateView.as_view(), name="api-generate"),
    path(f"{AGENT_PATH}/stream", agents.AnswerStreamView.as_view(), name="api-stream"),
    path(f"{AGENT_PATH}/stream-until-idle", agents.IdleStreamView.as_view(), name="api-stream-until-idle"),
    path(f"{AGENT_PATH}/observe", agents.ObserveView.as_view(), name="api-observe"),
    path(f"{AGENT_PATH}/recover", agents.RecoverView.as_view(), name="api-recover"),
    path(f"{AGENT_PATH}/suspended-runs", approvals.SuspendedRunsView.as_view(), name="api-suspended-runs"),
    path(f"{AGENT_PATH}/approve-tool-call", decisions.ApproveView.as_view(), name="api-approve-tool-call"),
    path(f"{AGENT_PATH}/decline-tool-call", decisions.DeclineView.as_view(), name="api-decline-tool-call"),
    path(
        f"{AGENT_PATH}/approve-tool-call-generate",
        decisions.ApproveGenerateView.as_view(),
        name="api-approve-tool-call-generate",
    ),
    path(
        f"{AGENT_PATH}/decline-tool-call-generate",
        decisions.DeclineGenerateView.as_view(),
        name="api-decline-tool-call-generate",
    ),
    path(f"{AGENT_PATH}/resume-stream", decisions.ResumeView.as_view(), name="api-resume-stream"),
    path(
        f"{AGENT_PATH}/resume-stream-until-idle",
        decisions.ResumeUntilIdleView.as_view(),
        name="api-resume-stream-until-idle",
    ),
    path(f"{AGENT_PATH}/send-tool-approval", decisions.SendToolApprovalView.as_view(), name="api-send-tool-approval"),
    path(f"{AGENT_PATH}/network", agents.NetworkStreamView.as_view(), name="api-network"),
    path(
        f"{AGENT_PATH}/approve-network-tool-call",
        decisions.ApproveNetworkView.as_view(),
        name="api-approve-network-tool-call",
    ),
    path(
        f"{AGENT_PATH}/decline-network-tool-call",
        decisions.DeclineNetworkView.as_view(),
        name="api-decline-network-tool-call",
    ),
    path(f"{AGENT_PATH}/resume-network", decisions.ResumeNetworkView.as_view(), name="api-resume-network"),
    path(f"{AGENT_PATH}/signals", thread_signals.SignalsView.as_view(), name="api-signals"),
    path(f"{AGENT_PATH}/send-message", thread_signals.SendMessageView.as_view(), name="api-send-message"),
    path(f"{AGENT_PATH}/queue-message", thread_signals.QueueMessageView.as_view(), name="api-queue-message"),
    path(f"{AGENT_PATH}/threads/subscribe", thread_signals.SubscribeView.as_view(), name="api-subscribe"),
    path(f"{AGENT_PATH}/threads/abort", thread_signals.AbortView.as_view(), name="api-abort-thread"),
    path(f"{RESOURCE_PATH}/export", personal_data.ResourceExportView.as_view(), name="api-resource-export"),
    path(f"{RESOURCE_PATH}/forget", personal_data.ResourceForgetView.as_view(), name="api-resource-forget"),
    path("approvals", approvals.ApprovalsView.as_view(), name="api-approvals"),
    path("approvals/<str:approval_id>", decisions.ApprovalView.as_view(), name="api-approval"),
    path("background-tasks", background_tasks.BackgroundTasksView.as_view(), name="api-background-tasks"),
    path("background-tasks/stream", background_tasks.TaskStreamView.as_view(), name="api-background-task-stream"),
    path(TASK_PATH, background_tasks.BackgroundTaskView.as_view(), name="api-background-task"),
    path(f"{TASK_PATH}/cancel", background_tasks.CancelTaskView.as_view(), name="api-background-task-cancel"),
    path("runs", runs.RunsView.as_view(), name="api-runs"),
    path(API_RUN_PATH, runs.RunDetailView.as_view(), name="api-run"),
    path(f"{API_RUN_PATH}/events", runs.EventsView.as_view(), name="api-run-events"),
    path(f"{API_RUN_PATH}/steps", runs.StepsView.as_view(), name="api-run-steps"),
    path(f"{API_RUN_PATH}/stream", runs.StreamView.as_view(), name="api-run-stream"),
    path(f"{API_RUN_PATH}/cancel", runs.CancelRunView.as_view(), name="api-run-cancel"),
]
