"""Background tasks in the API document."""

from __future__ import annotations

from agentcms.openapi.json_schema import ANY, DATE_TIME, INTEGER, OBJECT, STRING, UUID_STRING, object_of, page_of
from agentcms.openapi.operations import PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from runs_app.api.background_tasks import DATES
from runs_app.models import BackgroundTask

TASK = "/api/background-tasks/{taskId}"
OF_TASKS = ("agentId", "runId", "threadId", "resourceId")

TASK_OPERATIONS = (
    Operation(
        "get",
        "/api/background-tasks",
        "listBackgroundTasks",
        "List the background tasks of runs",
        "BackgroundTaskPage",
        query=(
            *PAGING,
            *OF_TASKS,
            "toolName",
            "toolCallId",
            "taskStatus",
            "fromDate",
            "toDate",
            "dateFilterBy",
            "taskOrder",
            "orderDirection",
            "strict",
        ),
    ),
    Operation(
        "get",
        "/api/background-tasks/stream",
        "streamBackgroundTasks",
        "Stream the changes of background tasks",
        "Events",
        query=(*OF_TASKS, "toolName", "toolCallId", "taskId", "strict"),
    ),
    Operation("get", TASK, "getBackgroundTask", "Get a background task", "BackgroundTask"),
    Operation("post", f"{TASK}/cancel", "cancelBackgroundTask", "Cancel a background task", "BackgroundTask"),
)

TASK_QUERY: dict[str, JSONObject] = {
    "taskStatus": {"name": "status", "schema": {"enum": ["all", *BackgroundTask.Status.values], "default": "all"}},
    "toolName": {"schema": STRING, "description": "The name of the tool, as the model sees it."},
    "toolCallId": {"schema": STRING, "description": "The ID of the tool call that became the task."},
    "dateFilterBy": {
        "schema": {"enum": [*DATES], "default": "createdAt"},
        "description": "The time to which fromDate and toDate refer.",
    },
    "taskOrder": {"name": "orderBy", "schema": {"enum": [*DATES], "default": "createdAt"}},
    "orderDirection": {"schema": {"enum": ["asc", "desc"], "default": "desc"}, "description": "The sort direction."},
}

TASK_PARAMETERS: dict[str, JSONObject] = {
    "agentId": {"description": "Only tasks of runs of this agent."},
    "runId": {"description": "Only tasks of this run."},
    "threadId": {"description": "Only tasks of runs of this conversation."},
    "resourceId": {"description": "Only tasks of runs of this resource."},
    "fromDate": {"description": "Only tasks of this time or later."},
    "toDate": {"description": "Only tasks before this time, which is not included."},
}

TASK_DESCRIPTIONS = {
    "listBackgroundTasks": "Background tasks are tool calls that go on while their agent answers.",
    "streamBackgroundTasks": "Begins with the tasks that run. The stream ends after an hour; then open another one.",
    "getBackgroundTask": "The result is there once the status is `completed`.",
    "cancelBackgroundTask": "A task that has ended stays unchanged.",
}

TASK_FIELDS = {
    "completedAt": "When the task ended.",
    "disposition": "Whether the run continues at once (deferred) or waits for the result (awaited).",
    "maxRetries": "How often the tool is called again after a failure.",
    "progress": "What the tool has reported: done, total and text.",
    "retryCount": "How often the tool was called again.",
    "suspendPayload": "The run of the sub-agent that waits for a person, and the calls to decide.",
    "tasks": "The background tasks of the page.",
    "timeoutMs": "The time that the tool may take, in milliseconds.",
}


def task_schemas() -> dict[str, JSONObject]:
    return {"BackgroundTask": task_schema(), "BackgroundTaskPage": page_of("tasks", "BackgroundTask")}


def task_schema() -> JSONObject:
    task = object_of(
        id=UUID_STRING,
        status={"enum": BackgroundTask.Status.values},
        toolName=STRING,
        toolCallId=STRING,
        args=OBJECT,
        agentId=STRING,
        runId=UUID_STRING,
        disposition={"enum": ["deferred", "awaited"]},
        createdAt=DATE_TIME,
        retryCount=INTEGER,
        maxRetries=INTEGER,
        timeoutMs=INTEGER,
    )
    optional = {"threadId": STRING, "resourceId": STRING, "result": ANY, "progress": OBJECT, "suspendPayload": OBJECT}
    dates = dict.fromkeys(("startedAt", "suspendedAt", "completedAt"), DATE_TIME)
    task["properties"] |= {**optional, **dates, "error": object_of(message=STRING)}
    return task


BACKGROUND_TASK_SECTION = ApiSection(
    TASK_OPERATIONS,
    {"": "Background tasks"},
    task_schemas,
    descriptions=TASK_DESCRIPTIONS,
    parameters=TASK_PARAMETERS,
    page_size=50,
    query=TASK_QUERY,
    fields=TASK_FIELDS,
)
